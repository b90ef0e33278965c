"""Symbolic players for the prompting methods: they reply with the facts of a question's plan, in order.

Direct, CoT, SP-CoT and ReAct players give an answer, perhaps with supporting facts and triples. The answer is wrong if
the player did not see every fact: a gold passage is missing, or ReAct has no turns left. So it is in IRCoT if a fact's
passage was not retrieved, and in TRACE if the chain lacks a fact's triple.

SG-FSM's roles: the Decomposer asks for the first fact without a sub-answer, and calls a question with one fact simple.
The Searcher answers the sub-question; an answer to a wrong sub-question is wrong too. The Terminator continues until
all facts have sub-answers. The Summarizer sees only the cited passages: if they state every fact, its answer is right,
otherwise wrong (SG-FSM, section 4.6). The role ``revise`` repeats a reply in the right form.

Each mistake has a rate: for an answer or a search ``value`` (right passage, wrong answer), ``paragraph`` (both wrong)
and ``lucky`` (right answer, wrong passage); for the roles ``decompose``, ``stop`` and ``summary``; for every reply
``format``. After feedback, a Decomposer and a Searcher make mistakes at most at the rate `DEAF`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from safe_stepwise.checking.plans import DESCRIBED, described
from safe_stepwise.checking.statements import condition_on, phrase_question, state
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.methods.scene import PromptingScene, Scene, SubAnswer, TripleScene
from safe_stepwise.players.facts import DEAF, Facts
from safe_stepwise.players.symbolic import AT_ONCE, NEVER, Rates, Role, in_json, render_turn
from safe_stepwise.records import Question, Triple

_OBSERVED = re.compile(r"Passage (\d+), ")
_SENTENCE_END = re.compile(r"[.?!:;]+")


def scene_of(request: Request) -> PromptingScene:
    if not isinstance(request.scene, PromptingScene):
        raise EngineError("the symbolic engine has no question to go by")
    return request.scene


def mistake(rates: Rates, chance: Random, has_feedback: bool = False) -> str:
    """Draw the mistake of an answer: ``value``, ``paragraph``, ``lucky``, or "" for none."""
    draw = chance.random()
    for name in ("value", "paragraph", "lucky"):
        rate = min(rates.rate_of(name), DEAF) if has_feedback else rates.rate_of(name)
        if draw < rate:
            return name
        draw -= rate
    return ""


def grounds(facts: Facts, is_right: bool) -> dict[str, Any]:
    """Return reply fields with the supporting facts and triples, as annotated, or wrong ones."""
    if not is_right:
        number = facts.other_passage("", facts.places[0], Random(facts.question.id))
        title = facts.question.passages[number - 1].title or "it"
        return {"supporting_facts": [[number, 0]], "evidences": [[title, "names", title]]}
    places = ((facts.passage(place), facts.sentences(place)) for place in facts.places)
    pairs = facts.annotated_sentences or [[number, n] for number, sentences in places for n in sentences]
    triples = facts.question.evidence or [t for place in facts.places for t in facts.plan.items[place].triples]
    names = dict.fromkeys((t.head, t.relation, t.tail) for t in triples)
    return {"supporting_facts": [*map(list, dict.fromkeys(map(tuple, pairs)))], "evidences": [*map(list, names)]}


def _conclude_fields(facts: Facts, evidence: bool, mistake_kind: str) -> dict[str, Any]:
    """Return the reply fields of a final answer with a mistake, or with none ("")."""
    answer = facts.wrong_answer if mistake_kind in ("value", "paragraph") else ""
    evidence_fields = grounds(facts, mistake_kind not in ("paragraph", "lucky")) if evidence else {}
    return {**evidence_fields, "answer": answer or facts.question.answer}


def _answer(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    scene = scene_of(request)
    mistake_kind = mistake(rates, chance) if facts.is_whole else "paragraph"
    explanation = _explain(facts) if facts.is_whole else "No passage states all of it."
    return in_json({"explain": explanation, **_conclude_fields(facts, scene.evidence, mistake_kind)}, rates, chance)


def _explain(facts: Facts) -> str:
    """State every fact of the plan, each with its passage."""
    return " ".join(_state(facts, place) for place in facts.places)


def _state(facts: Facts, place: int, numbers: Sequence[int] = ()) -> str:
    number = facts.passage(place)
    shown_number = numbers[number - 1] if numbers else number
    return f"According to Passage {shown_number}, {state(facts.plan.items[place].triples, 0)}."


def _act(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    """Write a ReAct turn: search the plan's next passage by title, at most twice, or finish if there is none."""
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


def _think(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    """Write IRCoT's next sentence: a fact, the passage to search for if it is not at hand, or the answer."""
    scene = scene_of(request)
    sentences = [sentence for sentence, _ in scene.turns]
    for place in facts.places:
        for sentence in _find(facts, place) if facts.is_hidden(place) else [_state(facts, place, scene.numbers)]:
            if sentence not in sentences:
                return sentence
    kind = mistake(rates, chance) if facts.is_whole else "paragraph"
    return f"So the answer is: {_conclude_fields(facts, False, kind)['answer']}."


def _find(facts: Facts, place: int) -> list[str]:
    """Write the sentences that search for a fact's passage: by its title and words, then by its question."""
    title = facts.claims.passages[facts.passage(place) - 1].title
    clause = state(facts.plan.items[place].triples, 0)
    texts = f"in {title} that {clause}", f"out {facts.question_for(place, {})}"
    return [f"I need to find {' '.join(_SENTENCE_END.sub(' ', text).split())}." for text in texts]


def _extract(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    """List the triples of a passage for TRACE: the plan's facts in it, and what its first sentence describes."""
    scene = request.scene
    assert isinstance(scene, Scene)
    assert scene.passage is not None
    page = scene.question.passages[scene.passage - 1]
    places = [place for place in facts.places if facts.passage(place) == scene.passage]
    listed = [t for place in places for t in facts.plan.items[place].triples]
    if page.sentences and not listed:
        listed = [Triple(page.title or "it", DESCRIBED, described(page.sentences[0]) or "nothing")]
    names = dict.fromkeys((t.head, t.relation, t.tail) for t in listed)
    return in_json({"triples": [*map(list, names)]}, rates, chance)


def _choose_triple(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    """Choose the candidate that states the plan's next fact, a wrong one at the error rate, or 0 at the end."""
    scene = _triple_scene(request)
    if chance.random() < rates.error_rate:
        return in_json({"number": chance.randint(0, len(scene.candidates))}, rates, chance)
    candidates = {_key(t): number for number, t in enumerate(scene.candidates, 1)}
    lacking = (candidates.get(key, 0) for key in _lacking(facts, scene))
    return in_json({"number": next(filter(None, lacking), 0)}, rates, chance)


def _answer_from_triples(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    is_stated = facts.is_whole and not any(_lacking(facts, _triple_scene(request)))
    fields = _conclude_fields(facts, False, mistake(rates, chance) if is_stated else "paragraph")
    return in_json({"explain": "The facts lead there.", **fields}, rates, chance)


def _triple_scene(request: Request) -> TripleScene:
    assert isinstance(request.scene, TripleScene)
    return request.scene


def _key(fact: Triple) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in (fact.head, fact.relation, fact.tail))


def _lacking(facts: Facts, scene: TripleScene) -> Iterator[tuple[str, ...]]:
    """Yield the triples of the plan's facts that the chain lacks."""
    chosen = set(map(_key, scene.chain))
    for place in facts.places:
        yield from (_key(t) for t in facts.plan.items[place].triples if _key(t) not in chosen)


MAX_QUESTION_CHARACTERS = 900
"""Maximum length of a rewritten question; if it would be longer, the original question is kept."""
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
    """Draw a wrong sub-question: one outside the plan, an answered one, a later fact's, or none ("simple")."""
    title = facts.question.passages[facts.other_passage("", facts.places[0], chance) - 1].title
    questions = [phrase_question([Triple(title, DESCRIBED, title)])]
    questions += [facts.question_for(place, answers) for place in (*answers, *lacking[1:])]
    if len(lacking) > 1:
        questions.append("")
    question = chance.choice(questions)
    return {"simple": not question, "subquestion": question or None}


def _search(scene: PromptingScene, facts: Facts, rates: Rates, chance: Random) -> ReplyFields:
    answers = facts.index_by_place(scene.sub_answers)
    mistake_kind = mistake(rates, chance, has_feedback=bool(scene.faults))
    if (place := facts.place_of(scene.subquestion, answers)) is None:
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
    """Answer a sub-question outside the plan: with the beginning of the passage that it is about."""
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
        return {"question": _rewrite(scene, facts, answers), "continue": True, "answer": None}
    answer = facts.ensure_wrong(scene.sub_answers[-1].answer) if lacking else facts.conclusion(answers)
    return {"question": scene.current, "continue": False, "answer": answer}


def _rewrite(scene: PromptingScene, facts: Facts, answers: AnswersByPlace) -> str:
    """Rewrite the question with the sub-answers so far: the last fact's own question, or the whole one with them."""
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
    "think": _think,
    "extract_triples": _extract,
    "choose_triple": _choose_triple,
    "answer_from_triples": _answer_from_triples,
    **dict.fromkeys((*_REPLY_WRITERS, "revise"), _reply_to_role),
}


def by_facts(play: Play, facts_of: Callable[[Question], Facts]) -> Role:
    """Make a role of a play: it gets the facts of the request's question."""

    def role(request: Request, rates: Rates, chance: Random) -> str:
        if not isinstance(request.scene, Scene | PromptingScene | TripleScene):
            raise EngineError("the symbolic engine has no question to go by")
        return play(request, facts_of(request.scene.question), rates, chance)

    return role
