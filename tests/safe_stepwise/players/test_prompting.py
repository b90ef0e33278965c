"""The players of prompting methods: right where nothing is wrong, and each mistake at its rate."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from math import comb, sqrt
from typing import Any

import pytest

from builders.synthetic import Spec, generate
from safe_stepwise.checking.faithfulness.grounds import Chain, grounds_of
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import options_type
from safe_stepwise.methods.prompting import readability, salvaged_answer
from safe_stepwise.methods.running import run_questions, transitions
from safe_stepwise.methods.sg_fsm import DECISIONS
from safe_stepwise.open import open_engine
from safe_stepwise.players.steps import checker_of, facts_of
from safe_stepwise.records import Passage, Question, Trajectory, Triple, select_passages
from safe_stepwise.scoring import exact_match

PROMPTING = ("direct", "cot", "sp_cot", "react", "sg_fsm1", "sg_fsm2", "sg_fsm_safe")
MACHINES = PROMPTING[-3:]
FILM = (
    Passage("Dune Rain", ("It is a film.", "Dune Rain was directed by Ors Velt."), True),
    Passage("Ors Velt", ("Ors Velt was born in Oru.",), True),
    Passage("Marn", ("Marn is a town.",)),
    Passage("Bo Vell", ("Bo Vell was a baker.",)),
)
HOPS = (Triple("Dune Rain", "director", "Ors Velt"), Triple("Ors Velt", "place of birth", "Oru"))
ASKED = "Where was the director of Dune Rain born?"
CHAIN = Question("q", "2wikimultihopqa", "train", ASKED, "Oru", hops=2, passages=FILM, evidence=HOPS)
SIMPLE = Question(
    "s",
    "2wikimultihopqa",
    "train",
    "Who directed the film Dune Rain?",
    "Ors Velt",
    hops=1,
    passages=FILM,
    evidence=HOPS[:1],
)


def answered(method: str, spec: str, questions: Sequence[Question], **options: Any) -> list[Trajectory]:
    """Trajectories of a generator's spec, whose verifier makes no mistakes."""
    found = METHODS[method]
    specs = {"generator": spec, "verifier": "symbolic"}
    clients = {role: Client(open_engine(specs[role]), tries=1) for role in found.roles}
    chosen = options_type(found)(**options)
    return asyncio.run(run_questions(questions, lambda q: found.answer(q, clients, chosen)))


def is_right(questions: Sequence[Question], found: Sequence[Trajectory]) -> list[bool]:
    pairs = zip(questions, found, strict=True)
    return [exact_match(one.answer, question.accepted) == 1 for question, one in pairs]


@cache
def synthetic() -> tuple[Question, ...]:
    return tuple(q for q, _ in generate(Spec(300, 1, 0.0, "plain"), split="train"))


@cache
def chains() -> tuple[Question, ...]:
    return tuple(q for q in synthetic() if checker_of(q).plan.kind == "sequential")


@cache
def right_at(method: str, spec: str) -> tuple[bool, ...]:
    return tuple(is_right(chains(), answered(method, spec, chains())))


def is_likely(count: int, rates: Sequence[float]) -> bool:
    """Whether so many of independent events of some rates lie within three sigma."""
    return abs(count - sum(rates)) <= 3 * sqrt(sum(rate * (1 - rate) for rate in rates))


def mcnemar(better: Sequence[bool], worse: Sequence[bool]) -> float:
    """The chance of a win as clear as that of the first, were there no difference."""
    pairs = Counter(zip(better, worse, strict=True))
    won, lost = pairs[True, False], pairs[False, True]
    return sum(comb(won + lost, n) for n in range(won, won + lost + 1)) / 2 ** (won + lost)


# ----------------------------------------------------------------------------------- no mistakes


@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize("method", PROMPTING)
def test_without_mistakes_all_is_right(method: str, evidence: bool) -> None:
    questions = synthetic()[:60]
    found = answered(method, "symbolic", questions, evidence=evidence)
    assert all(is_right(questions, found))
    assert {one.stop_reason for one in found} == {"answered"}
    counted = readability(found)
    assert counted["first"] == sum(counted.values()) > 0
    if method == "sg_fsm_safe":
        verdicts = {a.feedback.error_type for one in found for a in one.attempts if a.feedback}
        assert verdicts == {"Correct"}


@pytest.mark.parametrize("form", DECISIONS)
@pytest.mark.parametrize("method", ["sg_fsm1", "sg_fsm2"])
def test_each_form_of_the_terminator_is_played_rightly(method: str, form: str) -> None:
    """A comparison needs one more search, that for what follows from its facts."""
    questions = synthetic()[:60]
    trajectories = answered(method, "symbolic", questions, terminator=form, evidence=method == "sg_fsm2")
    assert all(is_right(questions, trajectories))
    assert {trajectory.stop_reason for trajectory in trajectories} == {"answered"}
    ends = {}
    for question, trajectory in zip(questions, trajectories, strict=True):
        states = [attempt.state for attempt in trajectory.attempts if attempt.state != "q5"]
        ends[checker_of(question).plan.kind] = states[-1] if method == "sg_fsm1" else states[-2]
    assert ends["sequential"] == "q4"
    assert {end for kind, end in ends.items() if kind != "sequential"} == {"q2"}


def test_a_terminator_that_only_decides_errs_in_both_ways() -> None:
    trajectories = answered("sg_fsm1", "symbolic:stop=0.3,seed=1", chains()[:60], terminator="decide")
    taken = transitions(trajectories)
    wrong = [t for t, right in zip(trajectories, is_right(chains()[:60], trajectories), strict=True) if not right]
    assert all(t.attempts[-1].state == "q4" for t in wrong)
    assert 0 < len(wrong) < 60
    assert taken["q4 → q0"] > 0


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("method", ["few_shot_cot", "cot_plan"])
def test_numbered_steps_are_faithful_unless_there_is_a_mistake(method: str, closed: bool) -> None:
    """Without passages, too. A wrong last fact is no faithful chain, whether the answer is right (lucky) or not."""
    questions = [select_passages(q, ()) if closed else q for q in synthetic()[:25]]
    for spec, share_right, verdict in (
        ("", 1, "faithful"),
        (":value=1", 0, "unfaithful"),
        (":lucky=1", 1, "unfaithful"),
    ):
        trajectories = answered(method, f"symbolic{spec}", questions)
        assert sum(is_right(questions, trajectories)) == share_right * len(questions)
        values = [trajectory.attempts[0].read["value"] for trajectory in trajectories]
        chains = [Chain(tuple(value["explain"].split("\n")), value["answer"]) for value in values]
        paths = [judge_chain(grounds_of(q), chain).path for q, chain in zip(questions, chains, strict=True)]
        assert set(paths) == {verdict}, spec
    forms = Counter(t.attempts[0].read["form"] for t in answered(method, "symbolic:format=1", questions))
    assert set(forms) == {"salvaged", "unreadable"}


@pytest.mark.parametrize("method", ["direct", "react", "sg_fsm2"])
def test_what_an_answer_rests_on_is_what_is_annotated(method: str) -> None:
    questions = [q for q in synthetic()[:80] if q.supporting_facts and q.evidence][:25]
    assert questions
    found = answered(method, "symbolic", questions, evidence=True)
    for question, one in zip(questions, found, strict=True):
        said: dict[str, Any] = one.attempts[-1].read["value"]
        pages = {page.title: n for n, page in enumerate(question.passages, 1)}
        facts = {(pages[fact.title], fact.sentence) for fact in question.supporting_facts}
        assert {(number, n) for number, n in said["supporting_facts"]} == facts
        triples = {(t.head, t.relation, t.tail) for t in question.evidence}
        assert set(map(tuple, said["evidences"])) == triples


def test_a_find_names_the_sentence_and_the_fact() -> None:
    (found,) = answered("sg_fsm1", "symbolic", [CHAIN], evidence=True)
    told = [a.read["value"] for a in found.attempts if a.state == "q2" and a.read]
    assert [(one["passage"], one["sentences"]) for one in told] == [(1, [1]), (2, [0])]
    assert [tuple(one["evidence"]) for one in told] == [(t.head, t.relation, t.tail) for t in HOPS]


def test_a_question_of_one_fact_is_simple() -> None:
    (found,) = answered("sg_fsm1", "symbolic", [SIMPLE])
    assert [attempt.state for attempt in found.attempts] == ["q0", "q2"]
    assert found.answer == "Ors Velt"


def test_a_chain_is_asked_for_hop_by_hop() -> None:
    (found,) = answered("sg_fsm1", "symbolic", [CHAIN])
    told = [json.loads(attempt.text) for attempt in found.attempts]
    assert [one.get("subquestion") for one in told if "subquestion" in one] == [
        "Who directed Dune Rain?",
        "Where was Ors Velt born?",
    ]
    assert told[2] == {"question": "Where was Ors Velt born?", "continue": True, "answer": None}


def test_who_lacks_a_passage_is_wrong() -> None:
    less = Question(
        **{name: getattr(CHAIN, name) for name in ("id", "benchmark", "split", "question")},
        answer="Oru",
        hops=2,
        passages=(FILM[0], *FILM[2:]),
        evidence=HOPS,
    )
    for method in PROMPTING:
        (found,) = answered(method, "symbolic", [less])
        assert found.stop_reason in ("answered", "withdrawn", "unfinished"), method
        assert found.answer != "Oru", method


def test_who_has_no_annotations_fails_with_the_reason() -> None:
    (found,) = answered("direct", "symbolic", [Question("q", "custom", "test", "Who?", "Oru")])
    assert found.stop_reason == "failed"
    assert "give no plan" in found.failure


# --------------------------------------------------------------------------------- the settings


def test_a_spec_without_rates_is_called_what_it_always_was() -> None:
    plain = open_engine("symbolic:error_rate=0.25,seed=9")
    assert plain.name == "symbolic:error_rate=0.25,seed=9 (simulated)"
    assert plain.identity == {"engine": "symbolic", "error_rate": 0.25, "seed": 9}
    assert open_engine("symbolic:format=0,lucky=0.0,seed=9,error_rate=0.25").name == plain.name
    other = open_engine("symbolic:value=0.2,stop=0.5")
    assert other.name == "symbolic:error_rate=0.0,seed=0,value=0.2,stop=0.5 (simulated)"
    assert other.identity["value"] == 0.2


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("value=1.1", "value has to be from 0 to 1"),
        ("stop=often", "stop has to be a number;"),
        ("format=never", "format has to be a number;"),
        ("value=0.5,lucky=0.6", "value, paragraph and lucky have to be 1 at most together"),
        ("error_rate=0.5,lucky=0.6", "at most together"),
        ("summry=1", "no setting 'summry'"),
    ],
)
def test_other_settings_are_a_users_mistake(settings: str, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        open_engine(f"symbolic:{settings}")


# ----------------------------------------------------------------------------------- the mistakes


def hops() -> list[int]:
    return [len(facts_of(question).places) for question in chains()]


def test_a_wrong_value_spoils_what_comes_after_it() -> None:
    one, two, safe = (right_at(method, "symbolic:value=0.2,seed=1") for method in MACHINES)
    assert len(one) > 200
    assert is_likely(sum(one), [0.8**n for n in hops()])
    assert mcnemar(two, one) < 0.01
    assert mcnemar(safe, one) < 0.01


def test_a_wrong_passage_is_beyond_the_summary() -> None:
    one, two, safe = (right_at(method, "symbolic:paragraph=0.2,seed=1") for method in MACHINES)
    assert is_likely(sum(one), [0.8**n for n in hops()])
    assert mcnemar(two, one) > 0.01
    assert mcnemar(safe, one) < 0.01
    assert mcnemar(safe, two) < 0.01


def test_a_lucky_answer_does_not_survive_the_summary() -> None:
    one, two, safe = (right_at(method, "symbolic:lucky=0.2,seed=1") for method in MACHINES)
    assert all(one)
    assert is_likely(sum(two), [0.8**n for n in hops()])
    assert mcnemar(safe, two) < 0.01


def test_a_summary_can_be_wrong_itself() -> None:
    some = chains()[:40]
    assert not any(is_right(some, answered("sg_fsm2", "symbolic:summary=1", some)))
    found = right_at("sg_fsm2", "symbolic:summary=0.3,seed=1")
    assert is_likely(sum(found), [0.7] * len(found))


def test_a_terminator_errs_in_both_ways() -> None:
    found = answered("sg_fsm1", "symbolic:stop=0.3,seed=1", chains())
    two = [(q, one) for q, one in zip(chains(), found, strict=True) if q.hops == 2]
    early = [sum(a.state == "q4" for a in one.attempts) == 1 for _, one in two]
    assert is_likely(sum(early), [0.3] * len(early))
    assert any(sum(a.state == "q4" for a in one.attempts) > 2 for _, one in two)


def test_a_wrong_decomposition_costs_questions() -> None:
    some = chains()[:60]
    found = answered("sg_fsm1", "symbolic:decompose=0.5,seed=1", some)
    assert 0 < sum(is_right(some, found)) < len(some)
    assert transitions(found)["q2 → q5"] > 0, "compound taken for simple"
    guarded = answered("sg_fsm_safe", "symbolic:decompose=0.5,seed=1", some)
    assert transitions(guarded)["g2 → q0"] > 0


@pytest.mark.parametrize("method", ["direct", "cot", "sp_cot", "react"])
def test_who_answers_at_once_is_wrong_at_its_rate(method: str) -> None:
    some = synthetic()[:200]
    found = is_right(some, answered(method, "symbolic:value=0.2,paragraph=0.1,seed=1", some))
    assert is_likely(sum(found), [0.7] * len(found))
    assert all(is_right(some[:50], answered(method, "symbolic:lucky=1", some[:50])))


def test_errors_depend_on_the_seed_and_the_request() -> None:
    some = synthetic()[:40]
    one, again, other = (
        answered("sg_fsm1", f"symbolic:error_rate=0.3,format=0.3,seed={seed}", some) for seed in (1, 1, 2)
    )
    assert one == again
    assert one != other


# --------------------------------------------------------------------------------------- the form


@pytest.mark.parametrize("evidence", [False, True])
def test_direct_is_strict_at_its_rate_and_salvaged_where_it_can_be(evidence: bool) -> None:
    some = synthetic()
    for share in (0, 1):
        spec = f"symbolic:format=0.3,salvageable={share},seed=1"
        found = answered("direct", spec, some, evidence=evidence)
        strict = is_right(some, found)
        assert is_likely(sum(strict), [0.7] * len(strict))
        pairs = zip(some, found, strict=True)
        saved = [exact_match(salvaged_answer(one), q.accepted) == 1 for q, one in pairs]
        assert saved == ([True] * len(saved) if share else strict)


def test_a_machine_gives_up_where_three_replies_in_a_row_cannot_be_read() -> None:
    found = answered("sg_fsm1", "symbolic:format=0.3,seed=1", chains())
    first = [a.read["form"] == "strict" for a in asked_first(found)]
    assert is_likely(sum(first), [0.7] * len(first))
    withdrawn = [one.stop_reason == "withdrawn" for one in found]
    assert is_likely(sum(withdrawn), [1 - (1 - 0.3**3) ** (3 * n) for n in hops()])
    assert [not gone for gone in withdrawn] == is_right(chains(), found)


def asked_first(found: Sequence[Trajectory]) -> Iterator[Any]:
    for one in found:
        yield from (a for a in one.attempts if a.read and "revises" not in a.read)


def test_a_turn_of_react_can_be_unreadable() -> None:
    some = synthetic()[:100]
    for share, form in ((0, "unreadable"), (1, "salvaged")):
        found = answered("react", f"symbolic:format=0.3,salvageable={share},seed=1", some)
        forms = Counter(attempt.read["form"] for one in found for attempt in one.attempts)
        assert set(forms) == {"strict", form}
        assert is_likely(forms[form], [0.3] * forms.total())
