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
from safe_stepwise.checking.statements import condition_on, phrase_question
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.methods.scene import PromptingScene, SubAnswer
from safe_stepwise.players.facts import DEAF, Facts
from safe_stepwise.players.symbolic import AT_ONCE, NEVER, Rates, Role, in_json, render_turn
from safe_stepwise.records import Question, Triple

_OBSERVED = re.compile(r"Passage (\d+), ")


def scene_of(request: Request) -> PromptingScene:
    """Return the scene of a prompting method's request."""
    if not isinstance(request.scene, PromptingScene):
        raise EngineError("the symbolic engine has no question to go by")
    return request.scene


def mistake(rates: Rates, chance: Random, has_feedback: bool = False) -> str:
    """``value``, ``paragraph``, ``lucky``, or none of them ("")."""
    draw = chance.random()
    for name in ("value", "paragraph", "lucky"):
        rate = min(rates.rate_of(name), DEAF) if has_feedback else rates.rate_of(name)
        if draw < rate:
            return name
        draw -= rate
    return ""


def grounds(facts: Facts, is_right: bool) -> dict[str, Any]:
    """Supporting facts and triples as they are annotated, or beside the point."""
    if not is_right:
        number = facts.other_passage("", facts.places[0], Random(facts.question.id))
        title = facts.question.passages[number - 1].title or "it"
        return {"supporting_facts": [[number, 0]], "evidences": [[title, "names", title]]}
    places = ((facts.passage(place), facts.sentences(place)) for place in facts.places)
    pairs = facts.annotated_sentences or [[number, n] for number, sentences in places for n in sentences]
    triples = facts.question.evidence or [t for place in facts.places for t in facts.plan.items[place].triples]
    names = dict.fromkeys((t.head, t.relation, t.tail) for t in triples)
    unique = dict.fromkeys(map(tuple, pairs))
    return {"supporting_facts": [*map(list, unique)], "evidences": [*map(list, names)]}


def _conclude_fields(facts: Facts, evidence: bool, mistake_kind: str) -> dict[str, Any]:
    answer = facts.wrong_answer if mistake_kind in ("value", "paragraph") else ""
    evidence_fields = grounds(facts, mistake_kind not in ("paragraph", "lucky")) if evidence else {}
    return {**evidence_fields, "answer": answer or facts.question.answer}


def _answer(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    scene = scene_of(request)
    mistake_kind = mistake(rates, chance) if facts.is_whole else "paragraph"
    numbers = " and ".join(dict.fromkeys(str(facts.passage(place)) for place in facts.places))
    explanation = "No passage states all of it." if not facts.is_whole else f"It is in Passage {numbers}."
    return in_json({"explain": explanation, **_conclude_fields(facts, scene.evidence, mistake_kind)}, rates, chance)


def _act(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    """Searches for each passage of the plan by its title, and finishes when all were brought.

    One that does not come is given up at the second try.
    """
    scene = scene_of(request)
    retrieved = {int(match[1]) for _, observed in scene.turns if (match := _OBSERVED.match(observed))}
    actions = [action for action, _ in scene.turns]
    titles = [" ".join(page.title.split()) for page in facts.question.passages]
    needed = dict.fromkeys(facts.passage(place) for place in facts.places)
    is_last = "Finish" in request.messages[-1].content.rpartition("Action:")[2]
    for number in needed:
        title = " ".join(facts.claims.passages[number - 1].title.split())
        action = f"Search[{title}]"
        # Each passage of that title may be what a search brings.
        if number in retrieved or actions.count(action) > max(1, titles.count(title)) or is_last:
            continue
        return render_turn(f"Thought: {title} has to be read.\nAction: {action}", rates, chance)
    mistake_kind = mistake(rates, chance) if facts.is_whole and retrieved.issuperset(needed) else "paragraph"
    fields = _conclude_fields(facts, scene.evidence, mistake_kind)
    argument = json.dumps(fields, ensure_ascii=False) if scene.evidence else fields["answer"]
    text = f"Thought: That is all there is to read.\nAction: Finish[{' '.join(argument.split())}]"
    return render_turn(text, rates, chance)


MAX_QUESTION_CHARACTERS = 900
"""Characters of a question that finds were put into; a longer one stays as it was."""
AnswersByPlace = Mapping[int, SubAnswer]
ReplyFields = dict[str, Any]


def _decompose(scene: PromptingScene, facts: Facts, rates: Rates, chance: Random) -> ReplyFields:
    answers = facts.index_by_place(scene.sub_answers)
    lacking = [place for place in facts.places if place not in answers]
    rate = min(rates.rate_of("decompose"), DEAF) if scene.faults else rates.rate_of("decompose")
    if chance.random() < rate:
        return _draw_wrong_question(facts, answers, lacking, chance)
    if len(facts.places) == 1:
        return {"simple": True, "subquestion": None}
    place = lacking[0] if lacking else facts.places[-1]
    return {"simple": False, "subquestion": facts.question_for(place, answers)}


def _draw_wrong_question(facts: Facts, answers: AnswersByPlace, lacking: list[int], chance: Random) -> ReplyFields:
    """Draw a wrong sub-question: none at all, a later fact's, an answered one, or one outside the plan."""
    number = facts.other_passage("", facts.places[0], chance)
    title = facts.question.passages[number - 1].title
    questions = [phrase_question([Triple(title, DESCRIBED, title)])]
    questions += [facts.question_for(place, answers) for place in (*answers, *lacking[1:])]
    if len(lacking) > 1:
        questions.append("")
    question = chance.choice(questions)
    return {"simple": not question, "subquestion": question or None}


def _search(scene: PromptingScene, facts: Facts, rates: Rates, chance: Random) -> ReplyFields:
    answers = facts.index_by_place(scene.sub_answers)
    mistake_kind = mistake(rates, chance, has_feedback=bool(scene.faults))
    place = facts.place_of(scene.subquestion, answers)
    if place is None:
        lacking = [n for n in facts.places if n not in answers] or [facts.places[-1]]
        place = lacking[0]
        if len(facts.places) > 1 and scene.subquestion != scene.current:
            return _beside_the_point(scene, facts, place, chance)
    if facts.is_misled(place, answers):
        mistake_kind = "paragraph"
    answer = facts.answer(place)
    if mistake_kind in ("value", "paragraph"):
        answer = facts.draw_wrong_answer(place, chance)
    number = facts.passage(place)
    if mistake_kind in ("paragraph", "lucky"):
        names = [answers[use].answer for use in facts.plan.items[place].uses if use in answers]
        number = facts.other_passage(names[-1] if names else "", place, chance)
    reply: ReplyFields = {"question": scene.subquestion, "passage": number}
    if scene.evidence:
        first = facts.plan.items[place].triples[0]
        page = scene.question.passages[number - 1]
        is_own = number == facts.passage(place)
        reply["sentences"] = facts.sentences(place) if is_own else [0][: len(page.sentences)]
        tail = answer if mistake_kind in ("value", "paragraph") else first.tail
        reply["evidence"] = [first.head, first.relation, tail]
    return {**reply, "answer": answer}


def _beside_the_point(scene: PromptingScene, facts: Facts, place: int, chance: Random) -> ReplyFields:
    """The answer to a question that is none of the plan's: what it is about, as a passage says."""
    pages = scene.question.passages
    about = [n for n, page in enumerate(pages, 1) if page.title and page.title in scene.subquestion]
    number = about[0] if about else facts.other_passage("", place, chance)
    page = pages[number - 1]
    answer = " ".join(" ".join(page.sentences[:1]).split()[:8]) or "nothing"
    reply: ReplyFields = {"question": scene.subquestion, "passage": number}
    if scene.evidence:
        reply |= {"sentences": [0][: len(page.sentences)], "evidence": [page.title or "it", DESCRIBED, answer]}
    return {**reply, "answer": answer}


def _terminate(scene: PromptingScene, facts: Facts, rates: Rates, chance: Random) -> ReplyFields:
    answers = facts.index_by_place(scene.sub_answers)
    lacking = [place for place in facts.places if place not in answers]
    goes_on = bool(lacking) != (chance.random() < rates.rate_of("stop"))
    if rates.stop in (NEVER, AT_ONCE):
        goes_on = rates.stop == NEVER
    if goes_on:
        return {"question": _rewritten(scene, facts, answers), "continue": True, "answer": None}
    answer = facts.ensure_wrong(scene.sub_answers[-1].answer) if lacking else facts.conclusion(answers)
    return {"question": scene.current, "continue": False, "answer": answer}


def _rewritten(scene: PromptingScene, facts: Facts, answers: AnswersByPlace) -> str:
    lacking = [place for place in facts.places if place not in answers]
    if len(lacking) == 1 and facts.plan.kind == "sequential":
        return facts.question_for(lacking[0], answers)
    question = scene.question.question
    text = condition_on(question, [(sub_answer.question, sub_answer.answer) for sub_answer in answers.values()])
    return text if len(text) <= MAX_QUESTION_CHARACTERS else question


def _summarize(scene: PromptingScene, facts: Facts, rates: Rates, chance: Random) -> ReplyFields:
    cited = {sub_answer.passage for sub_answer in scene.sub_answers}
    is_stated = facts.is_whole and all(facts.passage(place) in cited for place in facts.places)
    is_wrong = chance.random() < rates.rate_of("summary")
    answer = facts.question.answer
    if not is_stated:
        answer = facts.ensure_wrong(scene.answer)
    elif is_wrong:
        answer = facts.wrong_answer
    explanation = "What was found is there." if is_stated else "The passages do not state all of it."
    if not scene.evidence:
        return {"answer": answer, "reason": explanation}
    return {**grounds(facts, is_stated), "answer": answer, "explain": explanation}


_REPLY_WRITERS: Mapping[str, Callable[[PromptingScene, Facts, Rates, Random], ReplyFields]] = {
    "decompose": _decompose,
    "search": _search,
    "terminate": _terminate,
    "summarize": _summarize,
}


def _reply_to_role(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    scene = scene_of(request)
    write_reply = _REPLY_WRITERS.get(scene.mends or request.role)
    if write_reply is None:
        raise EngineError(f"the symbolic engine has no reply of {scene.mends!r} to revise")
    return in_json(write_reply(scene, facts, rates, chance), rates, chance)


Play = Callable[[Request, Facts, Rates, Random], str]
ROLES: Mapping[str, Play] = {
    **dict.fromkeys(("direct", "cot", "sp_cot"), _answer),
    "react": _act,
    **dict.fromkeys((*_REPLY_WRITERS, "revise"), _reply_to_role),
}


def by_facts(play: Play, facts_of: Callable[[Question], Facts]) -> Role:
    """The role of who goes by the facts of what was asked."""
    return lambda request, rates, chance: play(request, facts_of(scene_of(request).question), rates, chance)
