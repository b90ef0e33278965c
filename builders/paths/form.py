"""What can be told of a path by its form alone: the probe that tries to cheat on the probe.

It knows no fact. It says NO to a path whose first triple names nothing of the question, in which a
triple joins nothing named or told before it, or that does not name the answer. Whatever it gets
right, a model can get right without knowing anything.
"""

from collections.abc import Sequence

from safe_stepwise.graphs.told import end_key, first_lost, named_in
from safe_stepwise.records import Triple

_NO_NAMES = frozenset({"yes", "no"})


def is_marked(question: str, answer: str, path: Sequence[Triple]) -> bool:
    """Whether a path looks wrong.

    >>> oru = Triple("Ana Vorr", "place of birth", "Oru")
    >>> asked = "In which country was Ana Vorr born?"
    >>> is_marked(asked, "Oru", [oru]), is_marked(asked, "Kelvia", [oru])
    (False, True)
    """
    named = named_in(question, path)
    ends = {end_key(end) for triple in path for end in (triple.head, triple.tail)}
    sought = end_key(answer)
    return first_lost(path, named) is not None or (sought not in ends and sought not in _NO_NAMES)
