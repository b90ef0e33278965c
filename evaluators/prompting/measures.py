"""What one question's trajectory is worth beside EM and F1, by the question's annotations.

- **Salvaged**: EM and F1 with replies that only salvaging could read. The plain ones are strict.
- **Facts, evidence, joint**: by the official definitions (`safe_stepwise.metric.evidence`), where
  they were asked for and the benchmark has them: HotpotQA no triples, MuSiQue its gold passages.
- **Sub-answers**: how many of the gold ones (MuSiQue's decomposition, the ends of 2Wiki's triples)
  were found, and how many of their passages were read. R4C's derivations (HotpotQA) count as far as
  finds or triples speak of theirs, best of three annotators (`derivations`).
- **Failure**: SG-FSM's four reasons (section 2), by a rule each; see `failure`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, get_args

from evaluators.derivations import Derivation, coverage
from evaluators.outcomes import Outcome
from evaluators.prompting.answers import Said
from safe_stepwise.methods.asking import UNREADABLE, Prompting, readability
from safe_stepwise.methods.react import UNFINISHED
from safe_stepwise.methods.sg_fsm import WITHDREW
from safe_stepwise.metric import evidence
from safe_stepwise.records import FAILED, Question, Trajectory
from safe_stepwise.scoring import CUSTOM, exact_match, f1, normalize_answer

Failure = Literal["propagation", "lost", "format", "hallucination", "unanswered", "untold"]
FAILURES: tuple[Failure, ...] = get_args(Failure)
FORMS = ("first", "revised", "salvaged", "never")
"""How a reply could be read: at first try, after revision, by salvaging alone, not at all."""
PARTS = ("supporting_facts", "supporting_passages", "evidence", "joint")
REASONS = (*FAILURES, FAILED)
"""Why questions are wrong, or right for the wrong reason; the last: no request was answered."""
_SCORES = ("exact_match", "f1", "precision", "recall")
_COUNTS = ("gold", "found", "right", "gold_passages", "located")
_BY_PASSAGE = ("musique", CUSTOM)
"""Whose support is passages, not sentences."""


def measures(
    question: Question, trajectory: Trajectory, options: Any, scoring: str, derivations: Sequence[Derivation] = ()
) -> dict[str, Any]:
    """All of them, as a JSON object; what a method or a benchmark does not say is not there.

    ``options`` are the method's; of a method that does not prompt there is nothing. ``scoring`` is
    the benchmark whose rule counts.
    """
    if not isinstance(options, Prompting):
        return {}
    said = Said.of(question, trajectory, options.evidence)
    salvaged, accepted = said.salvaged, question.accepted
    values: dict[str, Any] = {
        "salvaged": {"exact_match": exact_match(salvaged, accepted), "f1": f1(salvaged, accepted, scoring)},
        "format": readability([trajectory]),
        **_support(said, scoring),
        **_on_the_way(said),
    }
    if derivations and (spoken := _spoken(said)) is not None:
        covered = coverage(spoken, derivations)
        values["derivations"] = {"passages": covered.passages, "triples": covered.triples}
    if kind := failure(said):
        values["failure"] = kind
    return values


def _support(said: Said, scoring: str) -> dict[str, dict[str, float]]:
    question, parts = said.question, dict[str, evidence.Overlap]()
    if scoring in _BY_PASSAGE:
        gold = [number for number, _ in question.gold]
        if said.passages is not None and gold:
            # What was withdrawn names no passage.
            parts["supporting_passages"] = evidence.passages_overlap(said.passages if said.answer else (), gold)
    elif said.facts is not None and question.supporting_facts:
        facts = [(fact.title, fact.sentence) for fact in question.supporting_facts]
        parts["supporting_facts"] = evidence.facts_overlap(said.cited_facts, facts, scoring)
        if question.evidence:
            triples = [(t.head, t.relation, t.tail) for t in question.evidence]
            parts["evidence"] = evidence.evidence_overlap(said.triples or (), triples)
        answer = evidence.answer_overlap(said.answer, question.accepted, scoring)
        parts["joint"] = evidence.joint(answer, *parts.values())
    return {name: {**asdict(part), "f1": part.f1} for name, part in parts.items()}


def gold_sub_answers(question: Question) -> list[tuple[str, int | None]]:
    """What each hop comes to, with its passage where that is known; nothing of HotpotQA's."""
    if question.decomposition:
        return [(hop.answer, hop.passage) for hop in question.decomposition]
    return [(triple.tail, triple.passage) for triple in question.evidence]


def _on_the_way(said: Said) -> dict[str, dict[str, int]]:
    """Counts of gold sub-answers, of finds, of those that are gold, of gold passages read."""
    gold = gold_sub_answers(said.question)
    if not gold or not said.is_hop_by_hop:
        return {}
    answers = Counter(normalize_answer(answer) for answer, _ in gold)
    finds = Counter(normalize_answer(find.answer) for find in said.finds)
    numbers = {number for number, _ in said.question.gold}
    return {
        "sub_answers": {
            "gold": len(gold),
            "found": len(said.finds),
            "right": (answers & finds).total(),
            "gold_passages": len(numbers),
            "located": len(numbers & {find.passage for find in said.finds}),
        }
    }


def _spoken(said: Said) -> dict[str, str] | None:
    """What a method says of each passage, by its title; None for one that says nothing of any."""
    if said.passages is None:
        return None
    titles, texts = said.titles, dict[str, str]()
    triples = " ".join(" ".join(triple) for triple in said.triples or ())
    spoken = [(find.passage, f"{find.question} {find.answer}") for find in said.finds]
    for page, text in [*spoken, *((page, triples) for page in said.passages)]:
        title = titles[page - 1]
        texts[title] = f"{texts.get(title, '')} {text}"
    return texts


def failure(said: Said) -> Failure | Literal[""]:
    """SG-FSM's four reasons (section 2) as rules, and two of ours; a question has one at most.

    ``hallucination``: the answer is right, and a gold passage is none of those that were cited. Of all others:
    ``format``, if salvaging makes the answer right, or nothing could be read at all; ``propagation``, if something was
    found on the way that is no gold sub-answer, or, where none are known (HotpotQA's), stands in no gold passage;
    ``unanswered``, if none of that holds and there is no answer; ``lost``, if something was found, all of it right,
    and the answer is wrong; ``untold``, if nothing was: where it went wrong nobody said. What only cites passages
    (with evidence) found them. None for a right answer else, and none for one that failed.
    """
    accepted = said.question.accepted
    if said.trajectory.stop_reason == FAILED:
        return ""
    if exact_match(said.answer, accepted):
        gold = {number for number, _ in said.question.gold}
        return "hallucination" if said.passages is not None and gold - said.passages else ""
    if exact_match(said.salvaged, accepted) or _is_unread(said):
        return "format"
    if _went_wrong(said):
        return "propagation"
    if not (said.answer or said.salvaged):
        return "unanswered"
    return "lost" if said.passages else "untold"


def _is_unread(said: Said) -> bool:
    trajectory = said.trajectory
    if said.salvaged or trajectory.stop_reason not in (UNREADABLE, UNFINISHED, WITHDREW):
        return False
    read = trajectory.attempts[-1].read if trajectory.attempts else None
    return isinstance(read, Mapping) and read.get("form") != "strict"


def _went_wrong(said: Said) -> bool:
    gold = {normalize_answer(answer) for answer, _ in gold_sub_answers(said.question)}
    gold |= {normalize_answer(answer) for answer in said.question.accepted} if gold else set()
    if gold and said.finds:
        return any(normalize_answer(find.answer) not in gold for find in said.finds)
    return bool((said.passages or frozenset()) - {number for number, _ in said.question.gold})


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    """The measures of one system's outcomes as one object; None where none has any.

    Shares and scores are 0-1, means over the questions that have them. ``failures`` are shares of
    all questions; a question has one at most, or its requests ``failed``. All but hallucinations,
    whose answers are right, are wrong by exact match, and the wrong ones are these.
    """
    measured = [outcome for outcome in outcomes if outcome.measures]
    if not measured:
        return None
    size = len(measured)

    def parts(name: str) -> list[Any]:
        return [outcome.measures[name] for outcome in measured if name in outcome.measures]

    failures = Counter(parts("failure"))
    failures[FAILED] = sum(outcome.trajectory.stop_reason == FAILED for outcome in measured)
    return {
        "questions": size,
        "strict": {name: sum(getattr(o, name) for o in measured) / size for name in ("exact_match", "f1")},
        "salvaged": _means(parts("salvaged"), ("exact_match", "f1")),
        "format": _formats(parts("format")),
        **{name: _means(parts(name), _SCORES) for name in PARTS},
        "sub_answers": _sub_answers(parts("sub_answers")),
        "derivations": _means(parts("derivations"), ("passages", "triples")),
        "failures": {name: {"questions": failures[name], "rate": failures[name] / size} for name in REASONS},
    }


def _means(parts: Sequence[Mapping[str, float]], names: Sequence[str]) -> dict[str, Any] | None:
    if not parts:
        return None
    return {"questions": len(parts), **{name: sum(part[name] for part in parts) / len(parts) for name in names}}


def _formats(parts: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    counts = {form: sum(part[form] for part in parts) for form in FORMS}
    replies = sum(counts.values())
    shares = {form: count / replies if replies else None for form, count in counts.items()}
    return {"replies": replies, "counts": counts, "shares": shares}


def _sub_answers(parts: Sequence[Mapping[str, int]]) -> dict[str, Any] | None:
    """Counts, and over all hops alike the shares that were found, right, and located."""
    if not parts:
        return None
    counts = {name: sum(part[name] for part in parts) for name in _COUNTS}
    shares = {
        "recall": counts["right"] / max(1, counts["gold"]),
        "precision": counts["right"] / max(1, counts["found"]),
        "passage_recall": counts["located"] / max(1, counts["gold_passages"]),
    }
    return {"questions": len(parts), **counts, **shares}
