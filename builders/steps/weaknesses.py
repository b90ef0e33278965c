"""Names the weaknesses of verifiers, the *families* of the cases that refinement mines (SAFE v1, section 3.3)."""

from collections.abc import Mapping
from typing import Any

from builders.steps.values import WORDS
from safe_stepwise.checking import step_reading
from safe_stepwise.checking.plans import Plan
from safe_stepwise.graphs.knowledge_graph import entity_key
from safe_stepwise.language.text import normal_name, without_qualifier
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.methods.loop import UNREAD
from safe_stepwise.records import Question, Step
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES, EVIDENCE_LABELS, category

WEAKNESSES: dict[str, str] = WORDS["families"]
"""Weaknesses of verifiers: from the name to what a verifier with that weakness does."""
_AMOUNTS = frozenset(("earliest", "latest", "longest", "most", "fewest"))
_SUBJECT_DECIDES = frozenset((*EVIDENCE_LABELS, *(e.name for e in ERROR_TYPES if e.category == "Attribution")))
"""Labels between which the subject of a step decides."""
_COMMON = word_list("stop_words") | word_list("function_words")
_DOUBTED: dict[str, str] = WORDS["doubted"]
"""Weaknesses of sound steps that are called wrong, by kind of step."""
_PASSED: dict[str, str] = WORDS["passed"]
"""Weaknesses of errors that pass as `Correct`, by label, else by category."""


def family_of(verifier_label: str, label: str, step: Step, plan: Plan, question: Question) -> str:
    """Return the name of the first weakness (family) that fits a disagreement; ``label`` is the right one.

    SAFE v1 (section 3.3) names two for example: look-alike names and comparisons of numbers, which the situation
    tells. The pair of labels tells all others. Steps are read as by the checker, not as by the second witness
    (`witness`).
    """
    if verifier_label == UNREAD:
        return "no verdict"
    is_of_subject = step.kind == "Attribution" and {verifier_label, label} <= _SUBJECT_DECIDES
    if is_of_subject and _has_look_alikes(step, plan, question):
        return "look-alike names"
    if step.kind == "Logical" and (plan.operation in _AMOUNTS or plan.kind == "calculated comparison"):
        return "numbers and dates compared"
    if label == CORRECT:
        return _DOUBTED[step.kind]
    if verifier_label == CORRECT:
        return _PASSED.get(label) or _PASSED[category(label)]
    procedural = {category(name) == "Procedural" for name in (verifier_label, label)}
    return "order of checks lost" if len(procedural) == 2 else "kinds of error mixed up"


def _has_look_alikes(step: Step, plan: Plan, question: Question) -> bool:
    """Whether a step names an entity of the plan that has a namesake in question or passages."""
    reading = step_reading.read_step(step.text)
    plan_names = dict.fromkeys(name for item in plan.items for name in item.ends)
    all_names = dict.fromkeys([*plan_names, *(page.title for page in question.passages)])
    pairs = ((a, b) for a in plan_names for b in all_names if are_alike(a, b))
    return any(reading.mentions(a) or reading.mentions(b) for a, b in pairs)


def are_alike(name: str, reference: str) -> bool:
    """Whether two names share half of the shorter one's words; a single word may be short for the other."""
    if entity_key(name) == entity_key(reference):
        return False
    words = [
        {word for word in normal_name(without_qualifier(n)).split() if word not in _COMMON and not word.isdigit()}
        for n in (name, reference)
    ]
    shorter = min(map(len, words))
    if words[0] == words[1]:
        return bool(shorter)
    return shorter > 1 and len(words[0] & words[1]) / shorter >= 0.5


def by_family(numbers: Mapping[str, Mapping[str, int]]) -> list[dict[str, Any]]:
    """Return every weakness with its name and meaning, and the given numbers of it (0 if absent)."""
    return [
        {"name": name, "meaning": meaning, **{key: counts.get(name, 0) for key, counts in numbers.items()}}
        for name, meaning in WEAKNESSES.items()
    ]
