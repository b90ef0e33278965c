"""The symbolic players of prompting methods: they go by the facts of a question's plan, in order.

Direct, CoT, SP-CoT and ReAct are asked for the same: an answer, perhaps with what it rests on. Who does not see all
that the answer needs gets it wrong: a row without its gold passages, or a ReAct model out of turns.

Of SG-FSM's roles the Decomposer asks for the first fact that is not found; it calls simple what is one fact. The
Searcher finds it, and something else once what it is asked for is a mistake. The Terminator goes on until all facts
are found. The Summarizer sees the passages that were cited alone: it puts a wrong answer right where they state every
fact, and a right one wrong where they do not (SG-FSM, section 4.6). Who revises says the same in the right form.

The mistakes, each with its rate: ``value`` (right passage, wrong answer), ``paragraph`` (both wrong) and ``lucky``
(right answer, wrong passage) of an answer or a search; ``decompose``, ``stop``, ``summary``; ``format`` of every
reply. Told of a fault, a Searcher makes them at most at the rate `DEAF`.
"""

import json
import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from safe_stepwise.checking.plans import DESCRIBED
from safe_stepwise.checking.statements import ask, given
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.methods.scene import AskedScene, Found
from safe_stepwise.players.facts import DEAF, Facts
from safe_stepwise.players.symbolic import AT_ONCE, NEVER, Rates, Role, turned, written
from safe_stepwise.records import Question, Triple

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
    names = dict.fromkeys((t.head, t.relation, t.tail) for t in triples)
    unique = dict.fromkeys(map(tuple, pairs))
    return {"supporting_facts": [*map(list, unique)], "evidences": [*map(list, names)]}


def _concluded(facts: Facts, evidence: bool, made: str) -> dict[str, Any]:
    answer = facts.other_answer if made in ("value", "paragraph") else ""
    held = grounds(facts, made not in ("paragraph", "lucky")) if evidence else {}
    return {**held, "answer": answer or facts.question.answer}


def _answer(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    scene = scene_of(request)
    made = mistake(rates, chance) if facts.is_whole else "paragraph"
    numbers = " and ".join(dict.fromkeys(str(facts.passage(place)) for place in facts.places))
    told = "No passage states all of it." if not facts.is_whole else f"It is in Passage {numbers}."
    return written({"explain": told, **_concluded(facts, scene.evidence, made)}, rates, chance)


def _act(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    """Searches for each passage of the plan by its title, and finishes when all were brought.

    One that does not come is given up at the second try.
    """
    scene = scene_of(request)
    brought = {int(match[1]) for _, observed in scene.turns if (match := _OBSERVED.match(observed))}
    done = [action for action, _ in scene.turns]
    titles = [" ".join(page.title.split()) for page in facts.question.passages]
    needed = dict.fromkeys(facts.passage(place) for place in facts.places)
    is_last = "Finish" in request.messages[-1].content.rpartition("Action:")[2]
    for number in needed:
        title = " ".join(facts.claims.passages[number - 1].title.split())
        action = f"Search[{title}]"
        # Each passage of that title may be what a search brings.
        if number in brought or done.count(action) > max(1, titles.count(title)) or is_last:
            continue
        return turned(f"Thought: {title} has to be read.\nAction: {action}", rates, chance)
    made = mistake(rates, chance) if facts.is_whole and brought.issuperset(needed) else "paragraph"
    fields = _concluded(facts, scene.evidence, made)
    argument = json.dumps(fields, ensure_ascii=False) if scene.evidence else fields["answer"]
    text = f"Thought: That is all there is to read.\nAction: Finish[{' '.join(argument.split())}]"
    return turned(text, rates, chance)


LONGEST = 900
"""Characters of a question that finds were put into; a longer one stays as it was."""
Known = Mapping[int, Found]
Said = dict[str, Any]


def _decompose(scene: AskedScene, facts: Facts, rates: Rates, chance: Random) -> Said:
    known = facts.known(scene.found)
    lacking = [place for place in facts.places if place not in known]
    rate = min(rates.of("decompose"), DEAF) if scene.faults else rates.of("decompose")
    if chance.random() < rate:
        return _misasked(facts, known, lacking, chance)
    if len(facts.places) == 1:
        return {"simple": True, "subquestion": None}
    place = lacking[0] if lacking else facts.places[-1]
    return {"simple": False, "subquestion": facts.asked(place, known)}


def _misasked(facts: Facts, known: Known, lacking: list[int], chance: Random) -> Said:
    """Compound taken for simple, a later fact first, one that is known, or none of the plan."""
    number = facts.other_passage("", facts.places[0], chance)
    title = facts.question.passages[number - 1].title
    questions = [ask([Triple(title, DESCRIBED, title)])]
    questions += [facts.asked(place, known) for place in (*known, *lacking[1:])]
    if len(lacking) > 1:
        questions.append("")
    asked = chance.choice(questions)
    return {"simple": not asked, "subquestion": asked or None}


def _search(scene: AskedScene, facts: Facts, rates: Rates, chance: Random) -> Said:
    known = facts.known(scene.found)
    made = mistake(rates, chance, is_told=bool(scene.faults))
    place = facts.place_of(scene.subquestion, known)
    if place is None:
        lacking = [n for n in facts.places if n not in known] or [facts.places[-1]]
        place = lacking[0]
        if len(facts.places) > 1 and scene.subquestion != scene.current:
            return _beside_the_point(scene, facts, place, chance)
    if facts.is_misled(place, known):
        made = "paragraph"
    answer = facts.answer(place)
    if made in ("value", "paragraph"):
        answer = facts.other(place, chance)
    number = facts.passage(place)
    if made in ("paragraph", "lucky"):
        names = [known[use].answer for use in facts.plan.items[place].uses if use in known]
        number = facts.other_passage(names[-1] if names else "", place, chance)
    said: Said = {"question": scene.subquestion, "passage": number}
    if scene.evidence:
        first = facts.plan.items[place].triples[0]
        page = scene.question.passages[number - 1]
        is_own = number == facts.passage(place)
        said["sentences"] = facts.sentences(place) if is_own else [0][: len(page.sentences)]
        tail = answer if made in ("value", "paragraph") else first.tail
        said["evidence"] = [first.head, first.relation, tail]
    return {**said, "answer": answer}


def _beside_the_point(scene: AskedScene, facts: Facts, place: int, chance: Random) -> Said:
    """The answer to a question that is none of the plan's: what it is about, as a passage says."""
    pages = scene.question.passages
    about = [n for n, page in enumerate(pages, 1) if page.title and page.title in scene.subquestion]
    number = about[0] if about else facts.other_passage("", place, chance)
    page = pages[number - 1]
    answer = " ".join(" ".join(page.sentences[:1]).split()[:8]) or "nothing"
    said: Said = {"question": scene.subquestion, "passage": number}
    if scene.evidence:
        said |= {"sentences": [0][: len(page.sentences)], "evidence": [page.title or "it", DESCRIBED, answer]}
    return {**said, "answer": answer}


def _terminate(scene: AskedScene, facts: Facts, rates: Rates, chance: Random) -> Said:
    known = facts.known(scene.found)
    lacking = [place for place in facts.places if place not in known]
    goes_on = bool(lacking) != (chance.random() < rates.of("stop"))
    if rates.stop in (NEVER, AT_ONCE):
        goes_on = rates.stop == NEVER
    if goes_on:
        return {"question": _rewritten(scene, facts, known), "continue": True, "answer": None}
    answer = facts.wrong(scene.found[-1].answer) if lacking else facts.conclusion(known)
    return {"question": scene.current, "continue": False, "answer": answer}


def _rewritten(scene: AskedScene, facts: Facts, known: Known) -> str:
    lacking = [place for place in facts.places if place not in known]
    if len(lacking) == 1 and facts.plan.kind == "sequential":
        return facts.asked(lacking[0], known)
    question = scene.question.question
    text = given(question, [(one.question, one.answer) for one in known.values()])
    return text if len(text) <= LONGEST else question


def _summarize(scene: AskedScene, facts: Facts, rates: Rates, chance: Random) -> Said:
    cited = {one.passage for one in scene.found}
    is_stated = facts.is_whole and all(facts.passage(place) in cited for place in facts.places)
    is_wrong = chance.random() < rates.of("summary")
    answer = facts.question.answer
    if not is_stated:
        answer = facts.wrong(scene.answer)
    elif is_wrong:
        answer = facts.other_answer
    told = "What was found is there." if is_stated else "The passages do not state all of it."
    if not scene.evidence:
        return {"answer": answer, "reason": told}
    return {**grounds(facts, is_stated), "answer": answer, "explain": told}


_SAID: Mapping[str, Callable[[AskedScene, Facts, Rates, Random], Said]] = {
    "decompose": _decompose,
    "search": _search,
    "terminate": _terminate,
    "summarize": _summarize,
}


def _say(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    scene = scene_of(request)
    says = _SAID.get(scene.mends or request.role)
    if says is None:
        raise EngineError(f"the symbolic engine has no reply of {scene.mends!r} to revise")
    return written(says(scene, facts, rates, chance), rates, chance)


Play = Callable[[Request, Facts, Rates, Random], str]
ROLES: Mapping[str, Play] = {
    **dict.fromkeys(("direct", "cot", "sp_cot"), _answer),
    "react": _act,
    **dict.fromkeys((*_SAID, "revise"), _say),
}


def by_facts(play: Play, facts_of: Callable[[Question], Facts]) -> Role:
    """The role of who goes by the facts of what was asked."""
    return lambda request, rates, chance: play(request, facts_of(scene_of(request).question), rates, chance)
