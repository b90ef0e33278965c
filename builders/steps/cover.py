"""Give every question a row of some class while no class gets more than its room."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence


def cover(options: Mapping[str, Sequence[str]], room: Mapping[str, int]) -> dict[str, str]:
    """One class for each question, out of those it has; as many questions as can be.

    Questions with few options choose first; one whose classes are all full makes earlier ones move
    to another class of theirs (an augmenting path over the few classes).

    >>> cover({"q1": ["a", "b"], "q2": ["a"]}, {"a": 1, "b": 1}) == {"q1": "b", "q2": "a"}
    True
    """
    given: dict[str, str] = {}
    members: dict[str, dict[str, None]] = {name: {} for name in room}
    left = Counter(room)
    for question in sorted(options, key=lambda name: len(options[name])):
        moves = _path(options, members, left, options[question])
        if moves is None:
            continue
        target = moves[0][1]
        for mover, new in reversed(moves[1:]):
            old = given[mover]
            del members[old][mover]
            members[new][mover] = None
            given[mover] = new
        given[question] = target
        members[target][question] = None
        left[moves[-1][1]] -= 1
    return given


def _path(
    options: Mapping[str, Sequence[str]],
    members: Mapping[str, Mapping[str, None]],
    left: Counter[str],
    wanted: Sequence[str],
) -> list[tuple[str, str]] | None:
    """Who moves where, the newcomer first, so that the last one enters a class with room."""
    direct = [name for name in wanted if left[name] > 0]
    if direct:
        # The class with most room keeps the rare ones free for questions without a choice.
        return [("", max(direct, key=lambda name: (left[name], name)))]
    queue = deque((name, [("", name)]) for name in dict.fromkeys(wanted))
    seen = set(wanted)
    while queue:
        name, moves = queue.popleft()
        for mover in members[name]:
            for other in options[mover]:
                if other in seen:
                    continue
                seen.add(other)
                further = [*moves, (mover, other)]
                if left[other] > 0:
                    return further
                queue.append((other, further))
    return None
