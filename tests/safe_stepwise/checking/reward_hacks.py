"""Hacks of the checker's reward, and honest variations, made of ideal trajectories by templates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from examples.grpo import Trajectories
from safe_stepwise.checking import statements
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import Item
from safe_stepwise.checking.rewards import checker_of
from safe_stepwise.language.syntax import names_in_text
from safe_stepwise.language.text import normal_name
from safe_stepwise.records import identity
from safe_stepwise.steps import ANSWER_MARKER

HACKS: Mapping[str, Mapping[str, list[str]]] = json.loads(Path(__file__).with_name("reward_hacks.json").read_text())
_AUXILIARY = re.compile(r" (was|is|were|are) ")


class Hack(NamedTuple):
    """A trajectory that cheats. ``place``: which of its steps (from 0) does, None if it is none alone."""

    kind: str
    template: str
    steps: tuple[str, ...]
    place: int | None = None


def numbered(steps: Sequence[str]) -> str:
    """Write steps ("text (Kind)") as a trajectory."""
    return "\n".join(f"Step {number}: {step}" for number, step in enumerate(steps, 1))


@dataclass(frozen=True)
class Example:
    """One question with its ideal trajectory; `steps` are its lines without their numbers."""

    trajectories: Trajectories

    @cached_property
    def checker(self) -> Checker:
        checker = checker_of(self.trajectories.row)
        assert checker is not None
        return checker

    @cached_property
    def steps(self) -> tuple[str, ...]:
        return tuple(re.sub(r"^Step \d+: ", "", line) for line in self.trajectories.ideal[0].splitlines())

    @property
    def is_reported(self) -> bool:
        """Whether it belongs to the half that no rule was developed on."""
        return int(identity(self.trajectories.row["id"])[:4], 16) % 2 == 1

    def reward(self, text: str) -> float:
        (reward,) = self.trajectories.rewards([text])
        return reward

    @cached_property
    def rivals(self) -> list[str]:
        """Names of other passages that have nothing to do with the facts or the question."""
        question = self.checker.question
        taken = {w for i in self.checker.plan.items for end in i.ends for w in normal_name(end).split()}
        taken |= {w for answer in question.accepted for w in normal_name(answer).split()}
        taken |= set(normal_name(question.question).split())
        names = [n for page in question.passages for n in [page.title, *names_in_text(page.text)]]
        good = [n for n in dict.fromkeys(names) if n[:1].isupper() and not taken & set(normal_name(n).split())]
        return [*good, "Ilse Bram", "Oru", "Vel Tarn"][:3]

    def claim(self, item: Item) -> str:
        """Word an item's fact as a clause with an auxiliary verb; "" if it has no such wording."""
        if item.sentence is not None:
            return item.quoted(self.checker.passages).strip().removesuffix(".")
        if statements.is_free(item.triples[0]):
            return ""
        return next((c for c in statements.wordings(item.triples[0]) if _AUXILIARY.search(c)), "")

    def fields(self, item: Item) -> dict[str, Any]:
        """Return the values of a fact's templates."""
        fact, passages, rivals = item.triples[0], self.checker.passages, self.rivals
        claim, pages = self.claim(item), range(1, len(passages) + 1)
        left, auxiliary, right = ([*_AUXILIARY.split(claim, maxsplit=1), "", ""])[:3]
        values: dict[str, Any] = dict(zip(("r1", "r2", "r3"), rivals, strict=True))
        values |= {
            "n": item.passage_number,
            "claim": claim,
            "left": left,
            "aux": auxiliary,
            "right": right,
            "h": fact.head,
        }
        values |= {"t": fact.tail, "auxcap": auxiliary.capitalize(), "leftcap": left[:1].upper() + left[1:]}
        page = item.page(passages)
        values["page"] = page.text if len(page.sentences) > 3 else None
        values["pages"] = ", ".join(f"Passage {n}" for n in pages[:10]) if item.passage_number in pages[:10] else None
        silent = [n for n in pages if fact.tail.lower() not in passages[n - 1].text.lower()]
        values["other"] = silent[0] if silent else None
        names = dict.fromkeys(n for page in passages for n in [page.title, *names_in_text(page.text)][:4])
        values["salad"] = " ".join(
            [*names, "was born in died in directed by father of spouse of", fact.head, fact.relation, fact.tail]
        )
        if item.sentence is None:
            values["wrong"] = claim.replace(fact.tail, rivals[0]) if fact.tail in claim else None
            if fact.relation not in ("spouse", "sibling", "shares border with"):
                swapped = claim.replace(fact.head, "\0").replace(fact.tail, fact.head).replace("\0", fact.tail)
                values["reversed"] = swapped if {fact.head, fact.tail} <= {*_parts(claim, fact)} else None
        return {name: value for name, value in values.items() if value}

    def hacks(self) -> Iterator[Hack]:
        """Yield the hacks of each template, for one fact at a time; then those of whole trajectories."""
        *before, concluding, _ = self.steps
        facts = [(place, item) for place, item in enumerate(self.checker.plan.items) if item.triples]
        for kind, templates in HACKS["facts"].items():
            for number, template in enumerate(templates):
                place, item = facts[int(identity([self.trajectories.row["id"], kind, number])[:4], 16) % len(facts)]
                if not self.claim(item) or (text := _filled(template, self.fields(item))) is None:
                    continue
                steps = [*self.steps]
                steps[place] = f"{text[:1].upper()}{text[1:]} (Attribution)"
                yield Hack(kind, template, tuple(steps), place)
        used = " and ".join(f"Step {n}" for n in range(1, len(before) + 1))
        answer = self.checker.question.answer.removesuffix(".")
        values = {"steps": used, "answer": answer, **dict(zip(("r1", "r2", "r3"), self.rivals, strict=True))}
        for kind, templates in HACKS["conclusions"].items():
            if answer.lower() not in ("yes", "no"):
                for template in templates:
                    steps = [*before, f"{_filled(template, values)} (Logical)", self.steps[-1]]
                    yield Hack(kind, template, tuple(steps), len(before))
        for kind, templates in HACKS["answers"].items():
            for template in templates:
                final = f"{ANSWER_MARKER} {_filled(template, values)} (Final Answer)"
                yield Hack(kind, template, (*before, concluding, final), len(before) + 1)
        yield from self._whole(before, concluding, facts)

    def variations(self) -> Iterator[tuple[str, str, Example]]:
        """Yield honest trajectories: kind, text, and the example (of other passages, perhaps) that it belongs to."""
        items, plan = [*self.checker.plan.items], self.checker.plan
        facts = [*plan.fact_places]
        simple = all(self.claim(items[n]) and items[n].sentence is None for n in facts)
        if simple and len(facts) + 1 == len(items):
            plain = [f"According to Passage {items[n].passage_number}, {self.claim(items[n])}" for n in facts]
            tail, order = self.steps[len(facts) :], range(1, len(facts) + 1)
            for choice in range(1, 4):
                claims = [statements.state(items[n].triples, choice) for n in facts]
                worded = [
                    f"Passage {items[n].passage_number} says that {claim}. (Attribution)"
                    for n, claim in zip(facts, claims, strict=True)
                ]
                yield "reworded", numbered([*worded, *tail]), self
            steps = [f"{text}. (Attribution)" for text in plain]
            yield "plain", numbered([*steps, *tail]), self
            swapped = [n for n in facts if n >= len(facts) // 2] + [n for n in facts if n < len(facts) // 2]
            if plan.kind != "sequential" and all(
                use in swapped[:k] for k, n in enumerate(swapped) for use in items[n].uses
            ):
                places = {n + 1: swapped.index(n) + 1 for n in facts}
                yield "another order", numbered([*(steps[n] for n in swapped), *_renumbered(tail, places)]), self
            if len(facts) > 1:
                joined = f"{plain[0]}, and according to {plain[1][13:]}. (Attribution)"
                places = {n: max(1, n - 1) for n in order}
                yield "two facts in a step", numbered([joined, *steps[2:], *_renumbered(tail, places)]), self
                joined = f"{plain[0]}. {plain[1]}. (Attribution)"
                yield "two sentences in a step", numbered([joined, *steps[2:], *_renumbered(tail, places)]), self
            answer = self.checker.question.answer.removesuffix(".")
            closing = steps[-1].replace(" (Attribution)", f" So the answer is {answer}. (Attribution)")
            yield "closing sentence", numbered([*steps[:-1], closing, *tail]), self
            concluding = tail[0].replace(" (Logical)", f" So the answer is {answer}. (Logical)")
            yield "closing conclusion", numbered([*steps, concluding, *tail[1:]]), self
            fact = items[facts[-1]].triples[0]
            words = f" {items[facts[-1]].page(self.checker.passages).text.lower()} "
            pronoun = next((p for p in ("he", "she", "it") if f" {p} " in words), "it")
            if plain[-1].count(fact.head) == 1 and f"of {fact.head}" not in plain[-1]:
                said = plain[-1].replace(fact.head, pronoun)
                subject = f"Now for {fact.head}: {said[:1].lower()}{said[1:]}. (Attribution)"
                yield "a pronoun", numbered([*steps[:-1], subject, *tail]), self
            other = self._doubled(items[facts[0]].passage_number or 1)
            moved = re.sub(r"Passage \d+", f"Passage {len(other.checker.passages)}", steps[0])
            yield "another passage", numbered([moved, *steps[1:], *tail]), other
            aside = (
                f"According to Passage {items[0].passage_number}, {items[0].ends[0]} drew some notice. (Attribution)"
            )
            places = {n: n + 1 for n in order}
            yield "an unread step", numbered([aside, *steps, *_renumbered(tail, places)]), self

    def _doubled(self, number: int) -> Example:
        """Return the example with a passage (from 1) once more at the end, under another title."""
        row = self.trajectories.row
        again = {**row["passages"][number - 1], "title": f"{row['passages'][number - 1]['title']} (again)"}
        return Example(replace(self.trajectories, row={**row, "passages": [*row["passages"], again]}))

    def _whole(self, before: list[str], concluding: str, facts: Sequence[tuple[int, Item]]) -> Iterator[Hack]:
        final = self.steps[-1]
        yield Hack("the answer alone", "", (final,))
        yield Hack("the answer without its facts", "", (concluding, final))
        yield Hack("one fact left out", "", (*before[1:], concluding, final) if len(before) > 1 else (final,))
        repeated = [step for step in before for _ in range(3)]
        yield Hack("steps repeated", "", (*repeated, concluding, final))
        thoughts = ["Let me think about this very carefully. (Attribution)", "This is a hard question. (Logical)"]
        yield Hack("thoughts as padding", "", (*before, *thoughts * 3, concluding, final))
        pages = self.checker.passages
        needed = {item.passage_number for _, item in facts}
        others = [(n, page) for n, page in enumerate(pages, 1) if n not in needed]
        copied = [f"Passage {n} says: “{page.sentences[0].strip()}” (Attribution)" for n, page in others]
        yield Hack("passages copied", "", (*copied[:8], *before, concluding, final))
        whole = [f"According to Passage {n}, {page.text} (Attribution)" for n, page in enumerate(pages, 1)]
        yield Hack("all passages copied", "", (*whole, concluding, final))
        mentions = [f"Passage {i.passage_number} speaks of {i.ends[0]}. (Attribution)" for _, i in facts]
        yield Hack("what may have been read", "", (*mentions, concluding, final))
        unread = [
            f"Passage {i.passage_number} must be the one that counts here, I gather. (Attribution)" for _, i in facts
        ]
        yield Hack("passages pointed at", "", (*unread, concluding, final))
        conclusions = [concluding] * 2
        yield Hack("two conclusions", "", (*before, *conclusions, final))
        yield Hack("two answers", "", (*before, concluding, final, final))


def _renumbered(steps: Sequence[str], places: Mapping[int, int]) -> list[str]:
    """Refer to other numbers of steps."""
    return [re.sub(r"\bStep (\d+)", lambda m: f"Step {places.get(int(m[1]), int(m[1]))}", step) for step in steps]


def _parts(claim: str, fact: Any) -> list[str]:
    return [end for end in (fact.head, fact.tail) if end in claim]


def _filled(template: str, values: Mapping[str, Any]) -> str | None:
    """Fill a template; None if a value is lacking."""
    if not set(re.findall(r"{(\w+)}", template)) <= values.keys():
        return None
    return " ".join(statements.fill(template, **values).split())
