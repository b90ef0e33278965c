"""Measure a prompting method's trajectory beside EM and F1, by the annotations of the question.

SG-FSM's machines answer hop by hop; with evidence (its Setting 2) every method names supporting facts and triples,
SG-FSM1 those of its sub-answers.

- **Salvaged**: EM and F1 with replies that only salvaging could read. Plain EM and F1 are strict.
- **Facts, evidence, joint**: by the official definitions (`safe_stepwise.metric.evidence`), where
  the prompt asks for them and the benchmark has them: HotpotQA has no triples, MuSiQue gold passages.
- **Sub-answers**: how many gold sub-answers (MuSiQue's decomposition, the ends of 2Wiki's triples) the method
  gave, and how many of their passages it read. For HotpotQA, the share of R4C's derivation that its
  sub-answers or triples state, for the best of three annotators (`derivations`).
- **Summary**: whether the answer was right before and after SG-FSM2's summary, and all gold passages found.
- **Failure**: SG-FSM's four reasons (section 2), by a rule each; see `failure`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from evaluators.derivations import Derivation, measure_coverage
from evaluators.outcomes import Outcome, statistics_of
from evaluators.uptake import UPTAKE, count_uptake
from safe_stepwise.methods import prompting, react, scene, sg_fsm, sg_fsm_safe
from safe_stepwise.methods.prompting import PromptingOptions, readability, vote
from safe_stepwise.methods.reading import UNREADABLE
from safe_stepwise.metric import evidence
from safe_stepwise.records import ANSWERED, FAILED, Attempt, Question, Trajectory, all_attempts
from safe_stepwise.scoring import CUSTOM, exact_match, f1, normalize_answer

Failure = Literal["propagation", "lost", "format", "hallucination", "unanswered", "untold"]
FAILURES: tuple[Failure, ...] = get_args(Failure)
FORMS = ("first", "revised", "salvaged", "never")
"""How a reply could be read: at first try, after revision, only by salvaging, never."""
OVERLAPS = ("supporting_facts", "supporting_passages", "evidence", "joint")
MARKS = {True: "right", False: "wrong"}
DOCUMENTS = ("right_documents", "wrong_documents")
REASONS = (*FAILURES, FAILED)
"""Reasons of failure, as `failure` explains them; ``failed``: a request got no reply."""
SAMPLES = "samples"
"""The measures of sampled trajectories, of which one was chosen."""
_SCORES = ("exact_match", "f1", "precision", "recall")
_COUNTS = ("gold", "found", "right", "gold_passages", "located")
_PASSAGE_BENCHMARKS = ("musique", CUSTOM)
"""Benchmarks that annotate supporting passages, not sentences."""
FACTS, TRIPLES = "supporting_facts", "evidences"
"""The fields of a reply with the facts and the triples that it gives as support."""


@dataclass(frozen=True, slots=True)
class SupportedAnswer:
    """An answer to a question with what supports it.

    ``facts`` (passage from 1, sentence from 0) and ``triples`` are None if the prompt did not ask for
    them; ``passages`` are None if the method never cites a passage.
    """

    question: Question
    trajectory: Trajectory
    sub_answers: tuple[scene.SubAnswer, ...]
    facts: tuple[tuple[int, int], ...] | None
    triples: tuple[tuple[str, str, str], ...] | None
    passages: frozenset[int] | None

    @classmethod
    def from_trajectory(cls, question: Question, trajectory: Trajectory, evidence: bool) -> "SupportedAnswer":
        """Read a trajectory; ``evidence``: facts and triples were asked for. Only an answer that counts has any."""
        answers, last = sg_fsm_safe.sub_answers(trajectory.attempts), _last(trajectory.attempts)
        facts: Sequence[Sequence[int]] | None = None
        triples: Sequence[Sequence[str]] | None = None
        if evidence:
            facts = last.get(FACTS, [(find.passage, n) for find in answers for n in find.sentences])
            triples = last.get(TRIPLES, [find.evidence for find in answers if find.evidence])
            if trajectory.stop_reason != ANSWERED:
                facts = triples = ()
        cited = {find.passage for find in answers} | {page for page, _ in facts or ()}
        return cls(
            question,
            trajectory,
            answers,
            None if facts is None else tuple((page, sentence) for page, sentence in facts),
            None if triples is None else tuple((h, r, t) for h, r, t in triples),
            frozenset(cited) if evidence or is_hop_by_hop(trajectory) else None,
        )

    @property
    def answer(self) -> str:
        """The answer of strictly read replies."""
        return self.trajectory.answer

    @property
    def salvaged(self) -> str:
        """The answer if salvaged replies also count."""
        return prompting.salvaged_answer(self.trajectory)

    @property
    def titles(self) -> list[str]:
        """The passages' titles in the order of their numbers: the question's, then those that verdicts retrieved."""
        retrieved = (page for attempt in self.trajectory.attempts for page in attempt.retrieved)
        return [page.title for page in (*self.question.passages, *retrieved)]

    @property
    def cited_facts(self) -> list[tuple[str, int]]:
        """The supporting facts in HotpotQA's form: titles instead of numbers."""
        titles = self.titles
        return [(titles[page - 1], sentence) for page, sentence in self.facts or ()]


def is_hop_by_hop(trajectory: Trajectory) -> bool:
    """Whether a trajectory's method gives sub-answers before the answer."""
    return any(attempt.state == sg_fsm.DECOMPOSE for attempt in trajectory.attempts)


def _last(attempts: Sequence[Attempt]) -> Mapping[str, Any]:
    if any(attempt.state == prompting.ANSWERING for attempt in attempts):
        return prompting.winning_fields(attempts)
    replies = map(sg_fsm_safe.strict_fields, reversed(attempts))
    return next((reply for reply in replies if FACTS in reply), {})


def measure_trajectory(
    question: Question, trajectory: Trajectory, options: Any, scoring: str, derivations: Sequence[Derivation] = ()
) -> dict[str, Any]:
    """Compute all measures of a trajectory, as a JSON object; leave out those that method or benchmark lacks.

    ``options`` are the method's; one that does not prompt has only measures of its samples. ``scoring`` names the
    benchmark whose scoring rule counts. ``derivations`` are R4C's for the question.
    """
    drawn = _score_samples(question, trajectory)
    if not isinstance(options, PromptingOptions):
        return drawn
    support = SupportedAnswer.from_trajectory(question, trajectory, options.evidence)
    salvaged, accepted = support.salvaged, question.accepted
    values: dict[str, Any] = {
        "salvaged": {"exact_match": exact_match(salvaged, accepted), "f1": f1(salvaged, accepted, scoring)},
        "format": readability([replace(trajectory, attempts=all_attempts(trajectory))]),
        **_measure_support(support, scoring),
        **_count_sub_answers(support),
        **_compare_summary(support),
        **drawn,
    }
    if derivations and support.passages is not None:
        values["derivations"] = asdict(measure_coverage(_list_statements(support, support.passages), derivations))
    if kind := failure(support):
        values["failure"] = kind
    return values


def _score_samples(question: Question, trajectory: Trajectory) -> dict[str, dict[str, float]]:
    """Return the exact match of a trajectory's samples: the first, the mean, the majority, the best (oracle)."""
    if not trajectory.sampled:
        return {}
    if trajectory.stop_reason == FAILED:  # it counts as an empty answer, whatever was sampled before
        return {SAMPLES: dict.fromkeys(("first", "mean", "majority", "oracle"), 0.0)}
    scores = [exact_match(sample.answer, question.accepted) for sample in trajectory.sampled]
    majority = vote(sample.answer for sample in trajectory.sampled)
    means = {"first": scores[0], "mean": sum(scores) / len(scores)}
    return {SAMPLES: {**means, "majority": exact_match(majority, question.accepted), "oracle": max(scores)}}


def _measure_support(support: SupportedAnswer, scoring: str) -> dict[str, dict[str, float]]:
    question, overlaps = support.question, dict[str, evidence.Overlap]()
    if scoring in _PASSAGE_BENCHMARKS:
        gold = [number for number, _ in question.gold]
        if support.passages is not None and gold:
            # A withdrawn answer cites no passage.
            overlaps["supporting_passages"] = evidence.passages_overlap(
                support.passages if support.answer else (), gold
            )
    elif support.facts is not None and question.supporting_facts:
        facts = [(fact.title, fact.sentence) for fact in question.supporting_facts]
        overlaps["supporting_facts"] = evidence.facts_overlap(support.cited_facts, facts, scoring)
        if question.evidence:
            triples = [(t.head, t.relation, t.tail) for t in question.evidence]
            overlaps["evidence"] = evidence.evidence_overlap(support.triples or (), triples)
        answer = evidence.answer_overlap(support.answer, question.accepted, scoring)
        overlaps["joint"] = evidence.joint(answer, *overlaps.values())
    return {name: {**asdict(overlap), "f1": overlap.f1} for name, overlap in overlaps.items()}


def gold_sub_answers(question: Question) -> list[tuple[str, int | None]]:
    """Return each hop's gold answer, with its passage where annotated; HotpotQA annotates none."""
    if question.decomposition:
        return [(hop.answer, hop.passage) for hop in question.decomposition]
    return [(triple.tail, triple.passage) for triple in question.evidence]


def _count_sub_answers(support: SupportedAnswer) -> dict[str, dict[str, int]]:
    gold = gold_sub_answers(support.question)
    if not gold or not is_hop_by_hop(support.trajectory):
        return {}
    answers = Counter(normalize_answer(answer) for answer, _ in gold)
    given_answers = Counter(normalize_answer(hop.answer) for hop in support.sub_answers)
    numbers = {number for number, _ in support.question.gold}
    counts = {
        "gold": len(gold),
        "found": len(support.sub_answers),
        "right": (answers & given_answers).total(),
        "gold_passages": len(numbers),
        "located": len(numbers & {hop.passage for hop in support.sub_answers}),
    }
    return {"sub_answers": counts}


def _compare_summary(support: SupportedAnswer) -> dict[str, dict[str, bool]]:
    """Compare the answer before a machine's summary (SG-FSM1's) with the last one (SG-FSM, section 4.6)."""
    attempts, question = support.trajectory.attempts, support.question
    moves = [(attempt.state, attempt.next_state) for attempt in attempts]
    gold = {number for number, _ in question.gold}
    if not gold or (sg_fsm.DONE, sg_fsm.SUMMARIZE) not in moves:
        return {}
    end = moves.index((sg_fsm.DONE, sg_fsm.SUMMARIZE))
    findings = sg_fsm_safe.sub_answers(attempts[:end])
    before = sg_fsm_safe.strict_fields(attempts[end - 1]).get("answer") or findings[-1].answer
    values = {"before": before, "after": support.answer}
    is_right = {name: bool(exact_match(answer, question.accepted)) for name, answer in values.items()}
    return {"summary": {"documents": gold <= {finding.passage for finding in findings}, **is_right}}


def _list_statements(support: SupportedAnswer, passages: Iterable[int]) -> Iterator[tuple[str, str]]:
    triples = " ".join(" ".join(triple) for triple in support.triples or ())
    statements = [(hop.passage, f"{hop.question} {hop.answer}") for hop in support.sub_answers]
    titles = support.titles
    yield from ((titles[page - 1], text) for page, text in (*statements, *((page, triples) for page in passages)))


def failure(support: SupportedAnswer) -> Failure | Literal[""]:
    """Return why an answer failed: SG-FSM's four reasons (section 2) as rules, and two of ours.

    A right answer is a ``hallucination`` if a gold passage was not cited. A wrong one gets the first kind that fits:

    - ``format``: salvaging makes the answer right, or nothing could be read at all.
    - ``propagation``: a sub-answer is not gold, or, without annotated sub-answers (HotpotQA), a cited passage.
    - ``unanswered``: there is no answer.
    - ``lost``: everything that was cited is right. ``untold``: nothing was cited, so the reason is unknown.

    Return "" for any other right answer, and for a question whose request failed.
    """
    accepted = support.question.accepted
    if support.trajectory.stop_reason == FAILED:
        return ""
    if exact_match(support.answer, accepted):
        gold = {number for number, _ in support.question.gold}
        return "hallucination" if support.passages is not None and gold - support.passages else ""
    if exact_match(support.salvaged, accepted) or _is_unread(support):
        return "format"
    if _went_wrong(support):
        return "propagation"
    if not (support.answer or support.salvaged):
        return "unanswered"
    return "lost" if support.passages else "untold"


def _is_unread(support: SupportedAnswer) -> bool:
    trajectory = support.trajectory
    if support.salvaged or trajectory.stop_reason not in (UNREADABLE, react.UNFINISHED, sg_fsm.WITHDREW):
        return False
    read = trajectory.attempts[-1].read if trajectory.attempts else None
    return isinstance(read, Mapping) and read.get("form") != "strict"


def _went_wrong(support: SupportedAnswer) -> bool:
    gold = {normalize_answer(answer) for answer, _ in gold_sub_answers(support.question)}
    gold |= {normalize_answer(answer) for answer in support.question.accepted} if gold else set()
    if gold and support.sub_answers:
        return any(normalize_answer(hop.answer) not in gold for hop in support.sub_answers)
    return bool((support.passages or frozenset()) - {number for number, _ in support.question.gold})


def score_outcomes(outcomes: Sequence[Outcome], roles: Sequence[str] = ()) -> dict[str, Any]:
    """Compute the mean scores of outcomes of one setting, and the statistics of its loop, as a JSON object.

    A ``failed`` question counts as an empty answer; a question with verdict ``unscored`` is left out of ``accuracy``,
    which is None without any verdict. ``roles`` are counted even if no one played them. Prompting methods add their
    measures (`summarize`). If trajectories were sampled, `SAMPLES` has the exact match of the first, of their mean, of
    their majority, and of the best one (oracle). Retries have their uptake (`count_uptake`).
    """
    size, verdicts = len(outcomes), Counter(outcome.verdict for outcome in outcomes)
    summary = summarize(outcomes)
    drawn = [outcome.measures[SAMPLES] for outcome in outcomes if SAMPLES in outcome.measures]
    judged = verdicts["correct"] + verdicts["incorrect"]
    return {
        "exact_match": sum(outcome.exact_match for outcome in outcomes) / size,
        "f1": sum(outcome.f1 for outcome in outcomes) / size,
        "accuracy": verdicts["correct"] / judged if judged else None,
        "unscored": verdicts["unscored"],
        "failed": sum(outcome.trajectory.stop_reason == FAILED for outcome in outcomes),
        **statistics_of(outcomes, roles).as_json(),
        **({"prompting": summary} if summary else {}),
        **({UPTAKE: uptake} if (uptake := count_uptake(outcomes)) else {}),
        **({SAMPLES: {name: sum(row[name] for row in drawn) / len(drawn) for name in drawn[0]}} if drawn else {}),
    }


def summarize(outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    """Sum up the measures of one system's outcomes as a JSON object; return None if no outcome has measures.

    Shares and scores are 0-1, means over the questions that have them. ``failures`` counts questions by reason, and
    its rates are shares of all questions: every wrong answer has one reason, and a right answer at most hallucination.
    """
    measured = [outcome for outcome in outcomes if "format" in outcome.measures]
    if not measured:
        return None
    size = len(measured)

    def values_of(name: str) -> list[Any]:
        return [outcome.measures[name] for outcome in measured if name in outcome.measures]

    counts = {form: sum(row[form] for row in values_of("format")) for form in FORMS}
    replies = sum(counts.values())
    shares = {form: count / replies if replies else None for form, count in counts.items()}
    failures = Counter(values_of("failure"))
    failures[FAILED] = sum(outcome.trajectory.stop_reason == FAILED for outcome in measured)
    return {
        "questions": size,
        "strict": {name: sum(getattr(o, name) for o in measured) / size for name in ("exact_match", "f1")},
        "salvaged": _average_measures(values_of("salvaged"), ("exact_match", "f1")),
        "format": {"replies": replies, "counts": counts, "shares": shares},
        **{name: _average_measures(values_of(name), _SCORES) for name in OVERLAPS},
        "sub_answers": _sub_answers(values_of("sub_answers")),
        "summary": _count_summaries(values_of("summary")),
        "derivations": _average_measures(values_of("derivations"), ("passages", "triples")),
        "failures": {name: {"questions": failures[name], "rate": failures[name] / size} for name in REASONS},
    }


def _average_measures(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> dict[str, Any] | None:
    if not rows:
        return None
    return {"questions": len(rows), **{name: sum(row[name] for row in rows) / len(rows) for name in names}}


def _count_summaries(rows: Sequence[Mapping[str, bool]]) -> dict[str, dict[str, int]] | None:
    """Count what the summary did to answers, apart for right documents (all gold passages found) and wrong ones."""
    if not rows:
        return None
    counts = Counter((row["documents"], row["before"], row["after"]) for row in rows)
    return {
        documents: {f"{MARKS[old]}_to_{MARKS[new]}": counts[has_gold, old, new] for old in MARKS for new in MARKS}
        for has_gold, documents in zip(MARKS, DOCUMENTS, strict=True)
    }


def _sub_answers(rows: Sequence[Mapping[str, int]]) -> dict[str, Any] | None:
    if not rows:
        return None
    counts = {name: sum(row[name] for row in rows) for name in _COUNTS}
    shares = {
        "recall": counts["right"] / max(1, counts["gold"]),
        "precision": counts["right"] / max(1, counts["found"]),
        "passage_recall": counts["located"] / max(1, counts["gold_passages"]),
    }
    return {"questions": len(rows), **counts, **shares}
