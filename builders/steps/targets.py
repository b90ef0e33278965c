"""Which errors to ask a model for: those that can stand in a sound trajectory, drawn by seed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import read
from safe_stepwise.records import Passage, Step, StepKind
from safe_stepwise.taxonomy import check_order


@dataclass(frozen=True, slots=True)
class Target:
    """An error to ask for, where, and in a step of which kind."""

    error_type: str
    position: int
    kind: StepKind


def targets(question: str, possible: Iterable[Target], seed: int, number: int) -> list[Target]:
    """Errors of different types to ask for, at most ``number``, drawn by question id and seed.

    A type is drawn first, then one of the places where it can apply, so that over many questions
    all ten types come up alike.
    """
    places: dict[str, list[Target]] = {}
    for target in possible:
        places.setdefault(target.error_type, []).append(target)

    def drawn(error_type: str) -> int:
        return choice_for(str(seed), question, "error", error_type)

    return [places[t][drawn(t) % len(places[t])] for t in sorted(places, key=drawn)[:number]]


def applicable(checker: Checker, steps: Sequence[Step]) -> Iterator[Target]:
    """Every error that can stand in the place of a step of a sound trajectory."""
    facts, last = checker.plan.facts, len(checker.plan.items) - 1
    for position, step in enumerate(steps, 1):
        before = checker.established(steps[: position - 1])
        new = checker.established(steps[:position]).keys() - before.keys()
        settled = last in before
        all_read = checker.plan.kind == "sequential" and all(fact in before for fact in facts)
        if settled or all_read:
            yield Target("Overthinking", position, "Attribution")
        if settled:
            yield Target("Overthinking", position, "Logical")
        if step.kind == "Final Answer":
            yield Target("Wrong Conclusion", position, step.kind)
        elif step.kind == "Logical" and not settled:
            yield Target("Inefficiency", position, step.kind)
            yield Target("Logical Fallacy", position, step.kind)
        elif step.kind == "Attribution" and not settled and not all_read:
            fitting = {"Off-topic", "Inefficiency"}
            if before.keys() & set(facts):
                fitting.add("Redundancy")
            if new:
                fitting |= {"Contradictory", "Unsupported", "Information Miss"}
            if any(new & set(checker.plan.items[fact].uses) for fact in facts):
                fitting.add("Premature Attribution")
            for name in check_order(step.kind):
                if name in fitting:
                    yield Target(name, position, step.kind)


def imaginable(steps: Sequence[Step]) -> Iterator[Target]:
    """Every error that a step of its kind can have, where what came before is not known."""
    for position, step in enumerate(steps, 1):
        for name in check_order(step.kind):
            if position > 1 or name not in ("Redundancy", "Overthinking"):
                yield Target(name, position, step.kind)


def follows_plan(checker: Checker, steps: Sequence[Step]) -> bool:
    """Whether each fact of the plan is read by the step of its own number."""
    done = checker.established(steps)
    return all(done.get(fact) == fact + 1 for fact in checker.plan.facts)


def gives_away(checker: Checker, taken: Sequence[Step], guidance: str, *, is_sound: bool) -> bool:
    """Whether a guidance about the last step taken names what only a later step is to find.

    What the question, the accepted steps or the step itself name is known. After a step that is not sound, the fact
    that the next one has to read may be named, as a correction names it.
    """
    done = checker.established(taken if is_sound else taken[:-1])
    spared: set[int | None] = {*done} if is_sound else {*done, checker.next_item(done)}
    texts = [checker.question.question, *(step.text for step in taken)]
    known, guide = read(Passage("", (" ".join(texts),))), read(Passage("", (guidance,)))
    for place in checker.plan.facts:
        item = checker.plan.items[place]
        # A fact told in a passage's own words is asked for by that passage's title.
        if place in spared or item.sentence is not None:
            continue
        value = checker.claims.value_of(item)
        if first_mention(guide, value) is not None and first_mention(known, value) is None:
            return True
    return False
