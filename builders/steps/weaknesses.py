"""How a verifier errs, by name: the families into which a refinement puts its errors.

SAFE v1 (section 3.3) looks for "recurring weaknesses" and has hard cases labelled for each, but
names two for example: lexically similar entities that are confused, and numerical comparisons that
fail. Here these two are known by the situation, all else by the pair of labels: what the verifier
said, and what it should have. Every disagreement is of exactly one family, the first that fits.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from safe_stepwise.checking.plans import Plan
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.graphs.knowledge_graph import entity_key
from safe_stepwise.language.text import normal_name, without_qualifier
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.methods.loop import UNREAD
from safe_stepwise.records import Question, Step
from safe_stepwise.taxonomy import CORRECT, category

_AMOUNTS = frozenset(("earliest", "latest", "longest", "most", "fewest"))
_OF_WHOM = {*(CORRECT, "Contradictory", "Unsupported"), *("Information Miss", "Premature Attribution", "Off-topic")}
"""Labels between which it decides what a step is about."""
_PLAIN = word_list("stop_words") | word_list("function_words")


@dataclass(frozen=True, slots=True)
class Family:
    """A weakness by its name, and what a verifier with it does."""

    name: str
    meaning: str


NO_VERDICT = Family("no verdict", "gives a step no verdict that can be read")
LOOK_ALIKES = Family(
    "look-alike names", "misjudges a fact about something whose name is much like another one's of the row"
)
AMOUNTS = Family(
    "numbers and dates compared", "misjudges a deduction from dates, numbers or counts: which is earlier, longer, more"
)
_DOUBTED = {
    "Attribution": Family("sound facts doubted", "finds an error in a fact rightly read"),
    "Logical": Family("sound deductions doubted", "finds an error in what does follow"),
    "Final Answer": Family("right answers doubted", "finds an error in the right answer"),
}
_DETOURS = Family("detours passed", "passes a step that leads nowhere or says nothing new")
_LACKING = Family("denials passed", "passes the claim that a fact stands nowhere, though it does")
_SKIPPED = Family("skipped links passed", "passes a fact before the one that leads to it")
_FALSE = Family("false facts passed", "passes a fact that its passage denies, or does not state")
_FALLACIES = Family("fallacies passed", "passes a deduction that does not follow")
_ANSWERS = Family("wrong answers passed", "passes a wrong answer, or one that was not earned")
_DISORDER = Family(
    "order of checks lost", "sees an error, but procedural for another, or another for procedural, which come first"
)
_MIXED = Family("kinds of error mixed up", "sees an error, and names another of its sort")
_PASSED = {
    "Procedural": _DETOURS,
    "Attribution": _FALSE,
    "Logical": _FALLACIES,
    "Final Answer": _ANSWERS,
    "Information Miss": _LACKING,
    "Premature Attribution": _SKIPPED,
}
"""What passes as `Correct`, by the label that it should have, else by that one's category."""
FAMILIES = tuple(
    dict.fromkeys((NO_VERDICT, LOOK_ALIKES, AMOUNTS, *_DOUBTED.values(), *_PASSED.values(), _DISORDER, _MIXED))
)


def family_of(said: str, label: str, step: Step, plan: Plan, question: Question) -> str:
    """The name of the family of one disagreement.

    ``said`` is the verifier's label of a step, or the loop's `UNREAD`; ``label`` is the one that it
    should have.

    >>> step, plan = Step(1, "Oru is a town.", "Attribution"), Plan("sequential", ())
    >>> family_of("Correct", "Unsupported", step, plan, Question("q", "b", "train", "Where?", "A"))
    'false facts passed'
    """
    if said == UNREAD:
        return NO_VERDICT.name
    on_whom = step.kind == "Attribution" and {said, label} <= _OF_WHOM
    if on_whom and _has_look_alikes(step, plan, question):
        return LOOK_ALIKES.name
    counts = plan.operation in _AMOUNTS or plan.kind == "calculated comparison"
    if step.kind == "Logical" and counts:
        return AMOUNTS.name
    return _by_labels(said, label, step).name


def _by_labels(said: str, label: str, step: Step) -> Family:
    if label == CORRECT:
        return _DOUBTED[step.kind]
    if said == CORRECT:
        return _PASSED.get(label) or _PASSED[category(label)]
    procedural = {category(name) == "Procedural" for name in (said, label)}
    return _DISORDER if len(procedural) == 2 else _MIXED


def _has_look_alikes(step: Step, plan: Plan, question: Question) -> bool:
    """Whether a step names what the plan speaks of, or something whose name is much like it."""
    said = read_step(step.text)
    ours = dict.fromkeys(name for item in plan.items for name in item.ends)
    named = dict.fromkeys([*ours, *(page.title for page in question.passages)])
    return any(alike(one, other) and (said.mentions(one) or said.mentions(other)) for one in ours for other in named)


def alike(one: str, other: str) -> bool:
    """Whether the names of two things share half of the shorter one's words, at least.

    A single word that stands in the other is no look-alike, as it may be short for it.

    >>> alike("Henry Percy", "Thomas Percy"), alike("Dune Rain (film)", "Dune Rain")
    (True, True)
    >>> alike("Percy", "Henry Percy"), alike("Henry Percy", "Oru")
    (False, False)
    """
    if entity_key(one) == entity_key(other):
        return False
    words = [frozenset(_words(name)) for name in (one, other)]
    shorter = min(map(len, words))
    if words[0] == words[1]:
        return bool(shorter)
    return shorter > 1 and len(words[0] & words[1]) / shorter >= 0.5


def _words(name: str) -> Iterator[str]:
    bare = normal_name(without_qualifier(name)).split()
    return (word for word in bare if word not in _PLAIN and not word.isdigit())
