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
from typing import Any, Literal

from evaluators.derivations import Derivation, coverage
from evaluators.prompting import Failure
from evaluators.prompting.answers import Said, said
from safe_stepwise.methods.asking import UNREADABLE, Prompting, readability
from safe_stepwise.methods.react import UNFINISHED
from safe_stepwise.methods.sg_fsm import WITHDREW
from safe_stepwise.metric.evidence import (
    Overlap,
    answer_overlap,
    evidence_overlap,
    facts_overlap,
    joint,
    passages_overlap,
)
from safe_stepwise.records import FAILED, Passage, Question, Trajectory
from safe_stepwise.scoring import CUSTOM, exact_match, f1, normalize_answer

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
    told = said(trajectory, options.evidence)
    accepted = question.accepted
    salvaged = exact_match(told.salvaged, accepted), f1(told.salvaged, accepted, scoring)
    found: dict[str, Any] = {
        "salvaged": {"exact_match": salvaged[0], "f1": salvaged[1]},
        "format": readability([trajectory]),
        **_support(question, trajectory, told, scoring),
        **_on_the_way(question, told),
    }
    if derivations and (spoken := _spoken(question, trajectory, told)) is not None:
        covered = coverage(spoken, derivations)
        found["derivations"] = {"passages": covered.passages, "triples": covered.triples}
    if kind := failure(question, trajectory, told):
        found["failure"] = kind
    return found


def pages(question: Question, trajectory: Trajectory) -> tuple[Passage, ...]:
    """The passages by number, those behind the question's own that verdicts brought in."""
    retrieved = (page for attempt in trajectory.attempts for page in attempt.retrieved)
    return (*question.passages, *retrieved)


def cited_facts(question: Question, trajectory: Trajectory, told: Said) -> list[tuple[str, int]]:
    """Supporting facts as HotpotQA has them: titles instead of numbers."""
    known = pages(question, trajectory)
    return [(known[page - 1].title, sentence) for page, sentence in told.facts or ()]


def _support(question: Question, trajectory: Trajectory, told: Said, scoring: str) -> dict[str, dict[str, float]]:
    parts: dict[str, Overlap] = {}
    if scoring in _BY_PASSAGE:
        gold = [number for number, _ in question.gold]
        if told.passages is not None and gold:
            # What was withdrawn names no passage.
            cited = told.passages if told.answer else ()
            parts["supporting_passages"] = passages_overlap(cited, gold)
    elif told.facts is not None and question.supporting_facts:
        facts = [(fact.title, fact.sentence) for fact in question.supporting_facts]
        cited_here = cited_facts(question, trajectory, told)
        parts["supporting_facts"] = facts_overlap(cited_here, facts, scoring)
        if question.evidence:
            triples = [(t.head, t.relation, t.tail) for t in question.evidence]
            parts["evidence"] = evidence_overlap(told.triples or (), triples)
        answer = answer_overlap(told.answer, question.accepted, scoring)
        parts["joint"] = joint(answer, *parts.values())
    return {name: {**asdict(part), "f1": part.f1} for name, part in parts.items()}


# ------------------------------------------------------------------------------------- on the way


def gold_sub_answers(question: Question) -> list[tuple[str, int | None]]:
    """What each hop comes to, with its passage where that is known; nothing of HotpotQA's."""
    if question.decomposition:
        return [(hop.answer, hop.passage) for hop in question.decomposition]
    return [(triple.tail, triple.passage) for triple in question.evidence]


def _on_the_way(question: Question, told: Said) -> dict[str, dict[str, int]]:
    """Counts of gold sub-answers, of finds, of those that are gold, of gold passages read."""
    gold = gold_sub_answers(question)
    if not gold or not told.is_hop_by_hop:
        return {}
    wanted = Counter(normalize_answer(answer) for answer, _ in gold)
    found = Counter(normalize_answer(one.answer) for one in told.found)
    numbers = {number for number, _ in question.gold}
    return {
        "sub_answers": {
            "gold": len(gold),
            "found": len(told.found),
            "right": (wanted & found).total(),
            "gold_passages": len(numbers),
            "located": len(numbers & {one.passage for one in told.found}),
        }
    }


def _spoken(question: Question, trajectory: Trajectory, told: Said) -> dict[str, str] | None:
    """What a method says of each passage, by its title; None for one that says nothing of any."""
    if told.passages is None:
        return None
    known = pages(question, trajectory)
    texts: dict[str, str] = {}
    for one in told.found:
        title = known[one.passage - 1].title
        texts[title] = f"{texts.get(title, '')} {one.question} {one.answer}"
    triples = " ".join(" ".join(triple) for triple in told.triples or ())
    for page in told.passages:
        title = known[page - 1].title
        texts[title] = f"{texts.get(title, '')} {triples}"
    return texts


# --------------------------------------------------------------------------------------- failures


def failure(question: Question, trajectory: Trajectory, told: Said) -> Failure | Literal[""]:
    """SG-FSM's four reasons (section 2) as rules, and two of ours; a question has one at most.

    ``hallucination``: the answer is right, and a gold passage is none of those that were cited.
    Of all others: ``format``, if salvaging makes the answer right, or nothing could be read at all;
    ``propagation``, if something was found on the way that is no gold sub-answer, or, where none
    are known (HotpotQA's), stands in no gold passage; ``unanswered``, if none of that holds and
    there is no answer; ``lost``, if something was found, all of it right, and the answer is wrong;
    ``untold``, if nothing was: where it went wrong nobody said. What only cites passages (with
    evidence) found them. None for a right answer else, and none for one that failed.
    """
    if trajectory.stop_reason == FAILED:
        return ""
    if exact_match(told.answer, question.accepted):
        gold = {number for number, _ in question.gold}
        return "hallucination" if told.passages is not None and gold - told.passages else ""
    if exact_match(told.salvaged, question.accepted) or _is_unread(trajectory, told):
        return "format"
    if _went_wrong(question, told):
        return "propagation"
    if not (told.answer or told.salvaged):
        return "unanswered"
    return "lost" if told.passages else "untold"


def _is_unread(trajectory: Trajectory, told: Said) -> bool:
    """Whether it ended at a reply of which nothing could be read."""
    if told.salvaged or trajectory.stop_reason not in (UNREADABLE, UNFINISHED, WITHDREW):
        return False
    read = trajectory.attempts[-1].read if trajectory.attempts else None
    return isinstance(read, Mapping) and read.get("form") != "strict"


def _went_wrong(question: Question, told: Said) -> bool:
    numbers = {number for number, _ in question.gold}
    gold = {normalize_answer(answer) for answer, _ in gold_sub_answers(question)}
    gold |= {normalize_answer(answer) for answer in question.accepted} if gold else set()
    if gold and told.found:
        return any(normalize_answer(one.answer) not in gold for one in told.found)
    return bool((told.passages or frozenset()) - numbers)
