"""Analyse a run of Deliberation on Priors as the paper does (section 4.4 and appendices), by rules instead of by hand.

*Path generation* (Table 4): for a beam of k, the first k proposals from each topic against all gold paths of the
question, over the questions with a gold path. H: one of them is gold. F1: over the two sets of paths.

*Constraint extraction* (Table 4, Figure 2): an extracted constraint is a gold one if it has its kind and, except for
case, each of its fields that is filled (``relation``, ``entity``, ``time``, ``comparison``); its words do not count.
H and F1 are over the questions with gold constraints, without induced kinds, which no annotation has.

*Errors* (Figure 4): a question whose first answer is wrong has the first of these kinds that applies. *Failed*: a
request failed for good. *No gold path*: no path of the graph is known to lead to the answers. *Path generation*: no
gold path was proposed. *Path selection*: another path gave the answers, or none did. *Instruction following*: the
reply could not be read, or names something that is not an end of the path. *Reasoning*: a gold path was followed, and
the answer is wrong all the same. Without a graph, an answer that contains a right one, or is contained in it, is an
error of instruction following (as "2008" for "2008 World Cup"), any other wrong answer one of reasoning.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from evaluators.deliberation import FOLLOW
from evaluators.deliberation.measuring import Run, ScoredCase
from evaluators.deliberation.options import NO_GRAPH
from evaluators.deliberation.scorers import HEADLINE, METRICS
from evaluators.outcomes import grouped
from safe_stepwise.methods.path_deliberating import CONSTRAINTS, VERIFY, constraints_in
from safe_stepwise.methods.reading import UNREADABLE
from safe_stepwise.records import CONSTRAINT_KINDS, FAILED, Candidate, Constraint, RelationPath
from safe_stepwise.scoring import set_f1

MAX_BEAM = 10  # the widest that is measured
ERRORS = ("failed", "no gold path", "path generation", "path selection", "instruction following", "reasoning")
CALL, GRAPH, GENERATION, SELECTION, INSTRUCTION, REASONING = ERRORS
_FIELDS = ("relation", "entity", "time", "comparison")


def analyse(run: Run, kinds: Sequence[str] = CONSTRAINT_KINDS) -> dict[str, Any]:
    """Compute the analyses of a run; ``kinds`` are those of constraints."""
    wrong = Counter(find_error(scored) for scored in run if not scored.scores[HEADLINE].hits_at_1)
    errors = {"wrong": wrong.total(), "by_kind": {kind: wrong[kind] for kind in ERRORS}}
    constraints = _measure_constraints(run, kinds)
    return {"path_generation": _measure_beams(run), "constraints": constraints, "errors": errors}


def _measure_beams(run: Run) -> list[dict[str, Any]]:
    """Measure path generation for each beam up to the most proposals from a topic."""
    pairs = [(_proposals_by_topic(scored), _gold_candidates(scored)) for scored in run if scored.case.gold_paths]
    rows = []
    for beam in range(1, 1 + min(MAX_BEAM, max((len(p) for topics, _ in pairs for p in topics.values()), default=0))):
        sets = [
            ({Candidate(t, p) for t, ps in topics.items() for p in ps[:beam] if p}, gold) for topics, gold in pairs
        ]
        rows.append({"beam": beam, **_average([(len(paths & gold), len(paths), len(gold)) for paths, gold in sets])})
    return rows


def _proposals_by_topic(scored: ScoredCase) -> dict[str, list[RelationPath]]:
    """Return the proposed paths of each topic in order; () stands for a proposal without one."""
    by_topic = grouped(scored.proposals, lambda attempt: str(attempt.read["topic"]))
    return {topic: [tuple(a.read["path"]) for a in attempts] for topic, attempts in by_topic.items()}


def _gold_candidates(scored: ScoredCase) -> set[Candidate]:
    return {Candidate(topic, path) for topic, paths in scored.case.gold_paths.items() for path in paths}


def _average(sizes: Sequence[tuple[int, int, int]]) -> dict[str, Any]:
    """Average H and F1 over questions by their numbers of matches, proposals and gold items; None without any."""
    scores = [(float(matches > 0), set_f1(matches, proposed, gold)) for matches, proposed, gold in sizes]
    hit, f1 = map(fmean, zip(*scores, strict=True)) if scores else (None, None)
    return {"questions": len(sizes), "hit": hit, "f1": f1}


def _measure_constraints(run: Run, kinds: Sequence[str]) -> dict[str, Any]:
    """Compare extracted constraints with gold ones, and count the questions with each kind, of those asked for any."""
    readings = [
        (scored, [a.read["value"] for a in scored.trajectory.attempts if a.state == CONSTRAINTS]) for scored in run
    ]
    pairs = [(constraints_in(values[-1]), scored.case.question.constraints) for scored, values in readings if values]
    of_five = [([c for c in extracted if c.kind in CONSTRAINT_KINDS], gold) for extracted, gold in pairs if gold]
    sizes = [(count_matches(extracted, gold), len(extracted), len(gold)) for extracted, gold in of_five]
    names = ("extracted", "gold")
    counts = [Counter(kind for pair in pairs for kind in {c.kind for c in pair[place]}) for place in range(len(names))]
    by_kind = {kind: {name: counts[place][kind] for place, name in enumerate(names)} for kind in kinds}
    return {"asked": len(pairs), **_average(sizes), "by_kind": by_kind}


def count_matches(extracted: Sequence[Constraint], gold: Sequence[Constraint]) -> int:
    """Count the gold constraints that were extracted, by the module's rule; an extracted one counts once."""
    remaining = [*extracted]
    filled = [(c.kind, {n: text.casefold() for n in _FIELDS if (text := getattr(c, n))}) for c in gold]
    # Those with most fields go first, so that a looser one does not take their match.
    for kind, fields in sorted(filled, key=lambda pair: -len(pair[1])):
        matches = (c for c in remaining if all(getattr(c, n).casefold() == text for n, text in fields.items()))
        if (match := next((c for c in matches if c.kind == kind), None)) is not None:
            remaining.remove(match)
    return len(extracted) - len(remaining)


def find_error(scored: ScoredCase) -> str:
    """Return the kind of error of a question that was answered wrongly, see the module's docstring."""
    trajectory, gold = scored.trajectory, _gold_candidates(scored)
    is_unreadable = trajectory.stop_reason == UNREADABLE
    if trajectory.stop_reason == FAILED:
        return CALL
    if trajectory.method == NO_GRAPH:
        return INSTRUCTION if is_unreadable or scored.scores["tog"].hits_at_1 else REASONING
    if not gold:
        return GRAPH
    if not gold & {Candidate(topic, path) for topic, paths in _proposals_by_topic(scored).items() for path in paths}:
        return GENERATION
    # The path whose answers count: the last that gave some, else the last that was tried.
    records = [attempt.read for attempt in trajectory.attempts if attempt.state in (VERIFY, FOLLOW)]
    answering = next((record for record in reversed(records) if record.get("answers")), records[-1] if records else {})
    if Candidate(answering.get("topic", ""), tuple(answering.get("path", ()))) not in gold:
        return SELECTION
    return INSTRUCTION if is_unreadable or answering.get("unreached") else REASONING


def average_repeats(records: Sequence[Mapping[str, Any]], repeats: int) -> list[dict[str, Any]]:
    """Average each system's independent runs (Table 7): mean and sample deviation; ``records`` run by run."""
    systems, rows = len(records) // repeats, []
    for place in range(systems if repeats > 1 else 0):
        columns = {name: [record[name] for record in records[place::systems]] for name in METRICS}
        measures = {name: {"mean": fmean(values), "deviation": stdev(values)} for name, values in columns.items()}
        rows.append({"name": records[place]["name"], "runs": repeats, **measures})
    return rows
