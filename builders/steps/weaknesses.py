"""The families into which a refinement puts a verifier's errors.

SAFE v1 (section 3.3) looks for "recurring weaknesses", but names two for example: lexically similar entities that are
confused, and numerical comparisons that fail. These two are known by the situation, all else by the pair of labels:
what the verifier said, and what it should have. Every disagreement is of exactly one family, the first that fits.
It reads steps as the checker does, which is why the second witness (`witness`) stands apart.
"""

from collections.abc import Iterator

from builders.steps.words import WORDS
from safe_stepwise.checking.plans import Plan
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.graphs.knowledge_graph import entity_key
from safe_stepwise.language.text import normal_name, without_qualifier
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.methods.loop import UNREAD
from safe_stepwise.records import Question, Step
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES, EVIDENCE, category

_AMOUNTS = frozenset(("earliest", "latest", "longest", "most", "fewest"))
_OF_WHOM = frozenset((*EVIDENCE, *(entry.name for entry in ERROR_TYPES if entry.category == "Attribution")))
"""Labels between which it decides what a step is about."""
_PLAIN = word_list("stop_words") | word_list("function_words")
_DOUBTED: dict[str, str] = WORDS["doubted"]
_PASSED: dict[str, str] = WORDS["passed"]
"""What passes as `Correct`, by the label that it should have, else by that one's category."""


def family_of(said: str, label: str, step: Step, plan: Plan, question: Question) -> str:
    """The name of the family of one disagreement.

    ``said`` is the verifier's label of a step, or the loop's `UNREAD`; ``label`` is the one that it should have.

    >>> step, plan = Step(1, "Oru is a town.", "Attribution"), Plan("sequential", ())
    >>> family_of("Correct", "Unsupported", step, plan, Question("q", "b", "train", "Where?", "A"))
    'false facts passed'
    """
    if said == UNREAD:
        return "no verdict"
    if step.kind == "Attribution" and {said, label} <= _OF_WHOM and _has_look_alikes(step, plan, question):
        return "look-alike names"
    if step.kind == "Logical" and (plan.operation in _AMOUNTS or plan.kind == "calculated comparison"):
        return "numbers and dates compared"
    if label == CORRECT:
        return _DOUBTED[step.kind]
    if said == CORRECT:
        return _PASSED.get(label) or _PASSED[category(label)]
    procedural = {category(name) == "Procedural" for name in (said, label)}
    return "order of checks lost" if len(procedural) == 2 else "kinds of error mixed up"


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
    words = [frozenset(_bare_words(name)) for name in (one, other)]
    shorter = min(map(len, words))
    if words[0] == words[1]:
        return bool(shorter)
    return shorter > 1 and len(words[0] & words[1]) / shorter >= 0.5


def _bare_words(name: str) -> Iterator[str]:
    bare = normal_name(without_qualifier(name)).split()
    return (word for word in bare if word not in _PLAIN and not word.isdigit())
