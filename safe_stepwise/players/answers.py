"""The symbolic players of methods that answer by themselves: Direct, CoT, SP-CoT and ReAct.

All are asked for the same: an answer, perhaps with what it rests on. The mistakes: ``value`` (a
wrong answer), ``paragraph`` (which rests on other passages, too), ``lucky`` (the right answer, but
for other passages) and ``format``. Who does not see all that the answer needs gets it wrong: a row
without its gold passages, or a ReAct model out of turns.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.methods.scene import AskedScene
from safe_stepwise.players.facts import Facts
from safe_stepwise.players.malformed import turned, written
from safe_stepwise.players.mistakes import DEAF
from safe_stepwise.players.symbolic import Rates, Role
from safe_stepwise.records import Question

_OBSERVED = re.compile(r"Passage (\d+), ")


def scene_of(request: Request) -> AskedScene:
    """What was asked for, of a prompting method's request."""
    if not isinstance(request.scene, AskedScene):
        raise EngineError("the symbolic engine has no question to go by")
    return request.scene


def mistake(rates: Rates, chance: Random, is_told: bool = False) -> str:
    """``value``, ``paragraph``, ``lucky``, or none of them ("")."""
    drawn = chance.random()
    for name in ("value", "paragraph", "lucky"):
        rate = min(rates.of(name), DEAF) if is_told else rates.of(name)
        if drawn < rate:
            return name
        drawn -= rate
    return ""


def grounds(facts: Facts, is_right: bool) -> dict[str, Any]:
    """Supporting facts and triples as they are annotated, or beside the point."""
    if not is_right:
        number = facts.other_passage("", facts.places[0], Random(facts.question.id))
        title = facts.question.passages[number - 1].title or "it"
        return {"supporting_facts": [[number, 0]], "evidences": [[title, "names", title]]}
    at = ((facts.passage(place), facts.sentences(place)) for place in facts.places)
    pairs = facts.annotated or [[number, n] for number, sentences in at for n in sentences]
    triples = facts.question.evidence or [t for place in facts.places for t in facts.plan.items[place].triples]
    told = [[t.head, t.relation, t.tail] for t in triples]
    return {"supporting_facts": _once(pairs), "evidences": _once(told)}


def _once(several: Sequence[list[Any]]) -> list[list[Any]]:
    return [one for n, one in enumerate(several) if one not in several[:n]]


def concluded(facts: Facts, evidence: bool, made: str) -> dict[str, Any]:
    """The fields of an answer with a mistake."""
    answer = facts.other_answer if made in ("value", "paragraph") else ""
    held = grounds(facts, made not in ("paragraph", "lucky")) if evidence else {}
    return {**held, "answer": answer or facts.question.answer}


def _answer(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    scene = scene_of(request)
    made = mistake(rates, chance) if facts.is_whole else "paragraph"
    numbers = " and ".join(dict.fromkeys(str(facts.passage(place)) for place in facts.places))
    told = "No passage states all of it." if not facts.is_whole else f"It is in Passage {numbers}."
    return written({"explain": told, **concluded(facts, scene.evidence, made)}, rates, chance)


# ------------------------------------------------------------------------------------------- ReAct


def _act(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    """Searches for each passage of the plan by its title, and finishes when all were brought.

    One that does not come is given up at the second try.
    """
    scene = scene_of(request)
    brought = {int(found[1]) for _, told in scene.turns if (found := _OBSERVED.match(told))}
    done = [action for action, _ in scene.turns]
    for number in dict.fromkeys(facts.passage(place) for place in facts.places):
        title = " ".join(facts.claims.passages[number - 1].title.split())
        action = f"Search[{title}]"
        if number in brought or done.count(action) > _namesakes(facts, title) or _is_last(request):
            continue
        return turned(f"Thought: {title} has to be read.\nAction: {action}", rates, chance)
    needed = {facts.passage(place) for place in facts.places}
    made = mistake(rates, chance) if facts.is_whole and needed <= brought else "paragraph"
    said = concluded(facts, scene.evidence, made)
    told = json.dumps(said, ensure_ascii=False) if scene.evidence else said["answer"]
    text = f"Thought: That is all there is to read.\nAction: Finish[{' '.join(told.split())}]"
    return turned(text, rates, chance)


def _namesakes(facts: Facts, title: str) -> int:
    """How many passages of that title there are, each of which a search may bring."""
    titles = [" ".join(page.title.split()) for page in facts.question.passages]
    return max(1, titles.count(title))


def _is_last(request: Request) -> bool:
    return "Finish" in request.messages[-1].content.rpartition("Action:")[2]


Play = Callable[[Request, Facts, Rates, Random], str]


def by_facts(play: Play, facts_of: Callable[[Question], Facts]) -> Role:
    """The role of who goes by the facts of what was asked."""
    return lambda request, rates, chance: play(request, facts_of(scene_of(request).question), rates, chance)


ROLES: Mapping[str, Play] = {**dict.fromkeys(("direct", "cot", "sp_cot"), _answer), "react": _act}
