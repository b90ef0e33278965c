"""Symbolic players for the prompting methods: they reply with the facts of a question's plan, in order.

Direct, CoT, SP-CoT and ReAct players give an answer, perhaps with supporting facts and triples. The answer is wrong if
the player did not see every fact: a gold passage is missing, or ReAct has no turns left. So it is in IRCoT if a fact's
passage was not retrieved, and in TRACE if the chain lacks a fact's triple.

Few-shot CoT and CoT-Plan state the facts in numbered steps, the last of them wrong if there is a mistake. Without any
passages, the player knows the facts.

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
from typing import Any, Literal

from safe_stepwise.checking.faithfulness.retrieval import verbalise
from safe_stepwise.checking.plans import DESCRIBED, describe
from safe_stepwise.checking.statements import condition_on, phrase_question, state, state_sentence
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.methods.scene import PromptingScene, Scene, SubAnswer, TripleScene
from safe_stepwise.players.facts import Facts
from safe_stepwise.players.symbolic import NO_QUESTION, Rates, Role, in_json, render_turn, scene_of
from safe_stepwise.records import Question, Triple

MistakeKind = Literal["", "value", "paragraph", "lucky"]
ReplyFields = dict[str, Any]
AnswersByPlace = Mapping[int, SubAnswer]
MAX_QUESTION_CHARACTERS = 900
"""Maximum length of a rewritten question; if it would be longer, the original question is kept."""
NOBODY = "Yxmar Quolph"
"""A made-up name, which no question has."""
_OBSERVED = re.compile(r"Passage (\d+), ")
_SENTENCE_END = re.compile(r"[.?!:;]+")


def draw_mistake(rates: Rates, chance: Random, *, is_complete: bool = True, has_feedback: bool = False) -> MistakeKind:
    """Draw the mistake of an answer, "" for none; without all facts (``is_complete``) it is always ``paragraph``."""
    if not is_complete:
        return "paragraph"
    draw = chance.random()
    kinds: tuple[MistakeKind, ...] = ("value", "paragraph", "lucky")
    for kind in kinds:
        rate = rates.rate_of(kind, has_feedback=has_feedback)
        if draw < rate:
            return kind
        draw -= rate
    return ""


def evidence_fields(facts: Facts, is_right: bool) -> ReplyFields:
    """Return reply fields with the supporting facts and triples, as annotated, or wrong ones."""
    if not is_right:
        number = facts.other_passage("", facts.places[0], Random(facts.question.id))
        title = facts.question.passages[number - 1].title or "it"
        return {"supporting_facts": [[number, 0]], "evidences": [[title, "names", title]]}
    places = ((facts.passage(place), facts.sentences(place)) for place in facts.places)
    pairs = facts.annotated_sentences or [[number, n] for number, sentences in places for n in sentences]
    triples = facts.question.evidence or [t for place in facts.places for t in facts.plan.items[place].triples]
    names = dict.fromkeys(triple.names for triple in triples)
    return {"supporting_facts": [*map(list, dict.fromkeys(map(tuple, pairs)))], "evidences": [*map(list, names)]}


def _answer_fields(facts: Facts, mistake: MistakeKind, evidence: bool = False) -> ReplyFields:
    """Return the reply fields of a final answer with a mistake; ``evidence``: with supporting facts and triples."""
    answer = facts.wrong_answer if mistake in ("value", "paragraph") else facts.question.answer
    fields = evidence_fields(facts, mistake not in ("paragraph", "lucky")) if evidence else {}
    return {**fields, "answer": answer}


def _answer(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    scene = scene_of(request, PromptingScene)
    fields = _answer_fields(facts, draw_mistake(rates, chance, is_complete=facts.is_whole), scene.evidence)
    statements = [_state(facts, place) for place in facts.places] if facts.is_whole else []
    return in_json({"explain": " ".join(statements) or "No passage states all of it.", **fields}, rates, chance)


def _state(facts: Facts, place: int, numbers: Sequence[int] = ()) -> str:
    number = facts.passage(place)
    shown_number = numbers[number - 1] if numbers else number
    return f"According to Passage {shown_number}, {state(facts.plan.items[place].triples, 0)}."


def _number_steps(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    """Write the facts as numbered steps, and the answer in brackets; a mistake makes the last fact wrong."""
    is_recalled = not facts.question.passages
    mistake = draw_mistake(rates, chance, is_complete=is_recalled or facts.is_whole)
    places = [place for place in facts.places if is_recalled or not facts.is_hidden(place)]
    steps = [_recall(facts, place) if is_recalled else _state(facts, place) for place in places]
    # A wrong name must not contain a right one, as some rules compare parts of names.
    wrong = NOBODY if any(name in facts.wrong_answer for name in facts.question.accepted) else facts.wrong_answer
    if mistake and places:
        value, wrong_value = facts.answer(places[-1]), wrong if facts.plan.kind == "sequential" else NOBODY
        steps[-1:] = [steps[-1].replace(value, wrong_value)] if value in steps[-1] else []
    lines = [f"{number}. {step}" for number, step in enumerate(steps or ["Nothing states it."], 1)]
    if request.role == "cot_plan":
        lines.insert(0, f"HINT: {' -> '.join(facts.plan.items[place].triples[0].relation for place in places)}")
    conclusion = f"So the answer is ({wrong if mistake in ('value', 'paragraph') else facts.question.answer})."
    if chance.random() >= rates.format:
        return "\n".join([*lines, conclusion])
    return conclusion if chance.random() < rates.salvageable else "\n".join(lines)


def _recall(facts: Facts, place: int) -> str:
    """State a fact without a passage; a relation with a graph's name, such as ``directed_by``, in its own words."""
    triples = facts.plan.items[place].triples
    return verbalise(triples[0]) if re.search("[._]", triples[0].relation) else state_sentence(triples)


def _act(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    """Write a ReAct turn: search the plan's next passage by title, at most twice, or finish if there is none."""
    scene = scene_of(request, PromptingScene)
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
    mistake = draw_mistake(rates, chance, is_complete=facts.is_whole and retrieved.issuperset(needed))
    fields = _answer_fields(facts, mistake, scene.evidence)
    argument = json.dumps(fields, ensure_ascii=False) if scene.evidence else fields["answer"]
    text = f"Thought: That is all there is to read.\nAction: Finish[{' '.join(argument.split())}]"
    return render_turn(text, rates, chance)


def _think(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    """Write IRCoT's next sentence: a fact, the passage to search for if it is not at hand, or the answer."""
    scene = scene_of(request, PromptingScene)
    sentences = [sentence for sentence, _ in scene.turns]
    for place in facts.places:
        is_hidden = facts.is_hidden(place)
        for sentence in _search_sentences(facts, place) if is_hidden else [_state(facts, place, scene.numbers)]:
            if sentence not in sentences:
                return sentence
    mistake = draw_mistake(rates, chance, is_complete=facts.is_whole)
    return f"So the answer is: {_answer_fields(facts, mistake)['answer']}."


def _search_sentences(facts: Facts, place: int) -> list[str]:
    """Write the sentences that search for a fact's passage: by its title and words, then by its question."""
    title = facts.claims.passages[facts.passage(place) - 1].title
    clause = state(facts.plan.items[place].triples, 0)
    texts = f"in {title} that {clause}", f"out {facts.question_for(place, {})}"
    return [f"I need to find {' '.join(_SENTENCE_END.sub(' ', text).split())}." for text in texts]


def _extract(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    """List the triples of a passage for TRACE: the plan's facts in it, and what its first sentence describes."""
    scene = scene_of(request, Scene)
    assert scene.passage is not None
    page = scene.question.passages[scene.passage - 1]
    places = [place for place in facts.places if facts.passage(place) == scene.passage]
    listed = [t for place in places for t in facts.plan.items[place].triples]
    if page.sentences and not listed:
        listed = [Triple(page.title or "it", DESCRIBED, describe(page.sentences[0]) or "nothing")]
    names = dict.fromkeys(triple.names for triple in listed)
    return in_json({"triples": [*map(list, names)]}, rates, chance)


def _choose_triple(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    """Choose the candidate that states the plan's next fact, a wrong one at the error rate, or 0 at the end."""
    scene = scene_of(request, TripleScene)
    if chance.random() < rates.error_rate:
        return in_json({"number": chance.randint(0, len(scene.candidates))}, rates, chance)
    candidates = {_key(t): number for number, t in enumerate(scene.candidates, 1)}
    numbers = (candidates.get(key, 0) for key in _missing_triples(facts, scene))
    return in_json({"number": next(filter(None, numbers), 0)}, rates, chance)


def _answer_from_triples(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    is_complete = facts.is_whole and not any(_missing_triples(facts, scene_of(request, TripleScene)))
    fields = _answer_fields(facts, draw_mistake(rates, chance, is_complete=is_complete))
    return in_json({"explain": "The facts lead there.", **fields}, rates, chance)


def _key(fact: Triple) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in fact.names)


def _missing_triples(facts: Facts, scene: TripleScene) -> Iterator[tuple[str, ...]]:
    """Yield the triples of the plan's facts that the chain lacks."""
    chosen = set(map(_key, scene.chain))
    for place in facts.places:
        yield from (_key(t) for t in facts.plan.items[place].triples if _key(t) not in chosen)


def _decompose(scene: PromptingScene, facts: Facts, rates: Rates, chance: Random) -> ReplyFields:
    answers = facts.index_by_place(scene.sub_answers)
    if chance.random() < rates.rate_of("decompose", has_feedback=bool(scene.faults)):
        return _draw_wrong_question(facts, answers, chance)
    if len(facts.places) == 1:
        return {"simple": True, "subquestion": None}
    place = (*facts.unanswered(answers), facts.places[-1])[0]
    return {"simple": False, "subquestion": facts.question_for(place, answers)}


def _rewrite_and_decompose(scene: PromptingScene, facts: Facts, rates: Rates, chance: Random) -> ReplyFields:
    """Decompose as `_decompose` does, and rewrite the question; once all facts have answers, it is simple."""
    answers = facts.index_by_place(scene.sub_answers)
    is_answered = bool(answers) and not facts.unanswered(answers)
    fields = {"simple": True, "subquestion": None} if is_answered else _decompose(scene, facts, rates, chance)
    return {"question": _rewrite(scene, facts, answers), **fields}


def _draw_wrong_question(facts: Facts, answers: AnswersByPlace, chance: Random) -> ReplyFields:
    """Draw a wrong sub-question: one outside the plan, an answered one, a later fact's, or none ("simple")."""
    title = facts.question.passages[facts.other_passage("", facts.places[0], chance) - 1].title
    questions = [phrase_question([Triple(title, DESCRIBED, title)])]
    later_places = facts.unanswered(answers)[1:]
    questions += [facts.question_for(place, answers) for place in (*answers, *later_places)]
    if later_places:
        questions.append("")
    question = chance.choice(questions)
    return {"simple": not question, "subquestion": question or None}


def _search(scene: PromptingScene, facts: Facts, rates: Rates, chance: Random) -> ReplyFields:
    answers = facts.index_by_place(scene.sub_answers)
    mistake = draw_mistake(rates, chance, has_feedback=bool(scene.faults))
    concludes = not facts.unanswered(answers) and scene.subquestion == scene.current
    if (place := facts.place_of(scene.subquestion, answers)) is None:
        place = (*facts.unanswered(answers), facts.places[-1])[0]
        if len(facts.places) > 1 and scene.subquestion != scene.current:
            return _answer_off_plan(scene, facts, place, chance)
    if facts.is_misled(place, answers):
        mistake = "paragraph"
    is_wrong = mistake in ("value", "paragraph")
    right_answer = facts.conclusion(answers) if concludes else facts.answer(place)
    answer = facts.draw_wrong_answer(place, chance) if is_wrong else right_answer
    number = facts.passage(place)
    if mistake in ("paragraph", "lucky"):
        names = [answers[use].answer for use in facts.plan.items[place].uses if use in answers]
        number = facts.other_passage(names[-1] if names else "", place, chance)
    reply: ReplyFields = {"question": scene.subquestion, "passage": number}
    if scene.evidence:
        first = facts.plan.items[place].triples[0]
        page = scene.question.passages[number - 1]
        is_own = number == facts.passage(place)
        reply["sentences"] = facts.sentences(place) if is_own else [0][: len(page.sentences)]
        reply["evidence"] = [first.head, first.relation, answer if is_wrong else first.tail]
    return {**reply, "answer": answer}


def _answer_off_plan(scene: PromptingScene, facts: Facts, place: int, chance: Random) -> ReplyFields:
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
    unanswered = facts.unanswered(answers)
    continues = bool(unanswered) != (chance.random() < rates.rate_of("stop"))
    if continues:
        return {"question": _rewrite(scene, facts, answers), "continue": True, "answer": None}
    answer = facts.ensure_wrong(scene.sub_answers[-1].answer) if unanswered else facts.conclusion(answers)
    return {"question": scene.current, "continue": False, "answer": answer}


def _continues(scene: PromptingScene, facts: Facts, rates: Rates, chance: Random) -> bool:
    """Decide whether the last sub-answer is not the answer of the question yet, wrongly at the rate ``stop``."""
    answers = facts.index_by_place(scene.sub_answers)
    is_needed = bool(facts.unanswered(answers)) or facts.conclusion(answers) != scene.sub_answers[-1].answer
    return is_needed != (chance.random() < rates.rate_of("stop"))


def _rewrite(scene: PromptingScene, facts: Facts, answers: AnswersByPlace) -> str:
    """Rewrite the question with the sub-answers so far: the last fact's own question, or the whole one with them."""
    unanswered = facts.unanswered(answers)
    if len(unanswered) == 1 and facts.plan.kind == "sequential":
        return facts.question_for(unanswered[0], answers)
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
    return {**evidence_fields(facts, is_stated), "answer": answer, "explain": explanation}


_REPLY_WRITERS: Mapping[str, Callable[[PromptingScene, Facts, Rates, Random], ReplyFields]] = {
    "decompose": _decompose,
    "decompose_with_findings": _rewrite_and_decompose,
    "search": _search,
    "terminate": _terminate,
    "decide": lambda *context: {"continue": _continues(*context)},
    "compare": lambda *context: {"identical": not _continues(*context)},
    "summarize": _summarize,
}


def _reply_to_role(request: Request, facts: Facts, rates: Rates, chance: Random) -> str:
    scene = scene_of(request, PromptingScene)
    write_reply = _REPLY_WRITERS.get(scene.mends or request.role)
    if write_reply is None:
        raise EngineError(f"the symbolic engine has no reply of {scene.mends!r} to revise")
    return in_json(write_reply(scene, facts, rates, chance), rates, chance)


FactsRole = Callable[[Request, Facts, Rates, Random], str]
"""A `Role` that also gets the facts of the request's question."""
ROLES: Mapping[str, FactsRole] = {
    **dict.fromkeys(("direct", "cot", "sp_cot"), _answer),
    **dict.fromkeys(("few_shot_cot", "cot_plan"), _number_steps),
    "react": _act,
    "think": _think,
    "extract_triples": _extract,
    "choose_triple": _choose_triple,
    "answer_from_triples": _answer_from_triples,
    **dict.fromkeys((*_REPLY_WRITERS, "revise"), _reply_to_role),
}


def role_from_play(play: FactsRole, facts_of: Callable[[Question], Facts]) -> Role:
    """Make a role of one that needs the facts of the request's question."""

    def role(request: Request, rates: Rates, chance: Random) -> str:
        if not isinstance(request.scene, Scene | PromptingScene | TripleScene):
            raise EngineError(NO_QUESTION)
        return play(request, facts_of(request.scene.question), rates, chance)

    return role
