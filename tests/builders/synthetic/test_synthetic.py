"""The synthetic benchmark: deterministic, coherent, and its truth is the truth."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime
from functools import cache, partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.benchmarks import parse_row
from builders.benchmarks.synthetic import parse
from builders.synthetic import BLOCK, Spec, generate, noise, parse_spec, to_row
from builders.synthetic.articles import write_article
from builders.synthetic.creation import make_world
from builders.synthetic.questions import Draft
from builders.synthetic.world import Day, Entity
from builders.synthetic.writers import names, writer
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.records import NoiseType, Passage, Question, Triple, canonical_json
from tests import sizes

DATES = {"date of birth", "date of death", "publication date", "inception"}
NATIONS = {"country of citizenship", "country", "country of origin", "shares border with"}
EPITHET = re.compile(r" (?:the Elder|the Younger|Sr\.|Jr\.)$| \([^)]*\)$")
KIN = {"spouse", "father", "mother", "child", "sibling"}
LATER = re.compile(r"\b(?:later|younger|newer|more recently)\b")


@cache
def noisy() -> tuple[tuple[Question, NoiseType], ...]:
    return tuple(generate(Spec(rows=3000, seed=41, noise=0.8)))


def rows(truth: NoiseType) -> list[Question]:
    return [question for question, known in noisy() if known == truth]


@cache
def spelled(name: str) -> set[str]:
    """A value as any of the writers may write it."""
    try:
        date = when(name)
    except AssertionError:
        return {writer(one).town(name) for one in names()}
    both = [Day(date.year, date.month, date.day, first) for first in (False, True)]
    return {writer(one).day(day) for one in names() for day in both} if " " in name else {name}


def says(text: str, triple: Triple) -> bool:
    """Whether the text has the triple's tail in it (a country: its stem, so its demonym too)."""
    if triple.relation not in NATIONS:
        return any(each in text for each in spelled(triple.tail))
    stem = re.sub(r"(?:ian|landic|orese|istani|oan|ia|land|or|istan|o)$", "", triple.tail)
    return len(stem) >= 4 and stem in text


def base(name: str) -> str:
    return EPITHET.sub("", name)


def about(question: Question, head: str) -> list[Passage]:
    """The gold passages about an entity: titled by it, or by it and a word in parentheses."""
    return [p for _, p in question.gold if p.title == head or base(p.title) == head
            or p.title.startswith(f"{head}, ")]  # fmt: skip


def when(text: str) -> datetime:
    for form in ("%d %B %Y", "%B %d, %Y", "%Y"):
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    raise AssertionError(f"no date: {text}")


def gold_text(question: Question) -> str:
    return " ".join(passage.text for _, passage in question.gold)


# ---------------------------------------------------------------------------------- determinism


@settings(max_examples=sizes.examples(12), deadline=None)
@given(st.integers(0, 450), st.integers(0, 60), st.integers(0, 60))
def test_ranges_compose(start: int, first: int, second: int) -> None:
    spec = Spec(rows=480, seed=5)
    whole = list(generate(spec, start, start + first + second))
    middle = start + first
    assert whole == [*generate(spec, start, middle), *generate(spec, middle, middle + second)]


def test_a_row_is_the_same_whichever_came_before_it() -> None:
    whole = list(generate(Spec(BLOCK, 7, 1.0)))
    towns = [i for i, (q, truth) in enumerate(whole) if truth == "entity_confusion"
             and any(", " in p.title for _, p in q.gold)]  # fmt: skip
    for i in towns[-6:]:
        assert list(generate(Spec(BLOCK, 7, 1.0), i, i + 1)) == whole[i : i + 1]


def test_same_bytes_twice_and_across_blocks() -> None:
    spec = Spec(rows=BLOCK + 20, seed=2)
    one = [canonical_json(to_row(q, t)) for q, t in generate(spec)]
    two = [canonical_json(to_row(q, t)) for q, t in generate(spec)]
    assert one == two
    assert len(one) == spec.rows


def test_splits_and_seeds_differ() -> None:
    spec = Spec(rows=30, seed=2)
    texts = {
        name: [q.question for q, _ in made]
        for name, made in (
            ("validation", generate(spec)),
            ("train", generate(spec, split="train")),
            ("other seed", generate(Spec(rows=30, seed=3))),
        )
    }
    assert texts["validation"] != texts["train"]
    assert texts["validation"] != texts["other seed"]


def test_ids_are_unique_and_silent_about_the_truth() -> None:
    ids = [q.id for q, _ in noisy()]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"synthetic-validation-41-\d+", i) for i in ids)


# ---------------------------------------------------------------------------------------- shape


def test_passages_of_every_row() -> None:
    for question, truth in noisy():
        assert len(question.passages) in (10, 20)
        titles = [p.title for p in question.passages]
        assert len(set(titles)) == len(titles), question.id
        assert all(len(p.sentences) >= 2 and all(p.sentences) for p in question.passages)
        gold = len(question.gold)
        assert gold == 0 if truth == "unparsed" else 2 <= gold <= 6
        if question.decomposition:
            assert len(question.passages) == 20


def test_annotations_of_every_row() -> None:
    for question, truth in noisy():
        if truth == "unparsed":
            annotations = (question.evidence, question.supporting_facts, question.decomposition)
            assert annotations == ((), (), ())
            continue
        assert len(question.evidence) == question.hops >= 2
        gold = {p.title: len(p.sentences) for _, p in question.gold}
        assert all(0 <= f.sentence < gold[f.title] for f in question.supporting_facts)
        for hop in question.decomposition:
            assert hop.passage is not None
            assert question.passages[hop.passage - 1].is_gold
            assert all(0 < int(k) <= question.hops for k in re.findall(r"#(\d)", hop.question))


def test_all_kinds_relations_and_noise_occur() -> None:
    kinds = Counter(q.kind for q, _ in noisy())
    assert set(kinds) == {
        "compositional", "inference", "comparison", "bridge_comparison", "bridge",
        "intersection", "2hop", "3hop", "4hop",
    }  # fmt: skip
    relations = {t.relation for q, _ in noisy() for t in q.evidence}
    assert relations == {
        "director", "performer", "composer", "author", "producer", "cast member", "spouse",
        "father", "mother", "child", "sibling", "place of birth", "place of death",
        "date of birth", "date of death", "country of citizenship", "country",
        "country of origin", "publication date", "inception", "educated at", "employer",
        "founded by", "headquarters location", "capital", "shares border with",
        "located in the administrative territorial entity", "award received", "record label",
        "place of burial",
    }  # fmt: skip


@pytest.mark.parametrize("rate", [0.0, 0.12, 1.0])
def test_noise_comes_at_the_rate_asked_for(rate: float) -> None:
    truths = Counter(t for _, t in generate(Spec(rows=1500, seed=8, noise=rate)))
    assert truths["none"] / 1500 == pytest.approx(1 - rate, abs=0.03)
    for truth, (share, _) in noise.NOISE.items():
        assert truths[truth] / 1500 == pytest.approx(rate * share, abs=0.035)


def test_position_tells_nothing_about_the_truth() -> None:
    by_rest = [Counter[str]() for _ in range(5)]
    for i, (_, truth) in enumerate(noisy()):
        by_rest[i % 5][truth] += 1
    clean = [counts["none"] / 600 for counts in by_rest]
    assert max(clean) - min(clean) < 0.1


# ------------------------------------------------------------------------------------ soundness


def test_clean_evidence_is_stated_where_the_supporting_facts_point() -> None:
    for question in rows("none"):
        passages = {p.title: p for _, p in question.gold}
        pointed = " ".join(passages[f.title].sentences[f.sentence]
                           for f in question.supporting_facts)  # fmt: skip
        for triple in question.evidence:
            # An intersection's director article states the hop from the other end: the film.
            ends = [triple, Triple(triple.tail, triple.relation, base(triple.head))]
            named = about(question, triple.head) or about(question, triple.tail)
            assert named, (question.id, triple)
            assert any(says(pointed, end) for end in ends), (question.id, triple)


def test_clean_chains_lead_to_the_answer() -> None:
    for question in rows("none"):
        if "comparison" in question.kind or question.kind == "intersection":
            continue
        assert question.evidence[-1].tail == question.answer
        assert question.answer not in question.question
        for before, after in zip(question.evidence, question.evidence[1:], strict=False):
            assert base(before.tail) == base(after.head), question.id


def comparison_answer(question: Question) -> str:
    """The answer worked out again from the evidence alone."""
    half = len(question.evidence) // 2
    names = [base(t.head) for t in question.evidence[:2]]
    left, right = question.evidence[-2:]
    assert half in (1, 2)
    if left.relation not in DATES:
        return "yes" if left.tail == right.tail else "no"
    earlier = 0 if when(left.tail) < when(right.tail) else 1
    return names[1 - earlier if LATER.search(question.question) else earlier]


def test_clean_comparisons_follow_from_their_evidence() -> None:
    found = [q for q in rows("none") if "comparison" in q.kind]
    assert len(found) > 50
    for question in found:
        assert base(question.answer) == comparison_answer(question), question.id
    assert {"yes", "no"} <= {q.answer for q in found}


def test_clean_intersections_share_their_answer() -> None:
    for question in rows("none"):
        if question.kind == "intersection":
            heads = {base(t.head) for t in question.evidence}
            tails = {t.tail for t in question.evidence}
            assert base(question.answer) in heads or {question.answer} == tails


def unstated(question: Question) -> list[Triple]:
    """Hops whose two ends share no gold sentence."""
    found = []
    for triple in question.evidence:
        sentences = [s for p in about(question, triple.head) for s in p.sentences]
        sentences += [s for _, p in question.gold for s in p.sentences if base(triple.head) in s]
        if not any(says(s, triple) for s in sentences):
            found.append(triple)
    return found


def test_missing_evidence_is_one_hop_that_is_said_nowhere() -> None:
    for question in rows("missing_evidence"):
        missing = unstated(question)
        assert len(missing) == 1, (question.id, missing)
        head, tail = base(missing[0].head), missing[0].tail
        for passage in question.passages:
            if head in passage.title and passage.is_gold:
                assert not says(passage.text, missing[0])
            elif not passage.is_gold:
                assert not (head in passage.text and tail in passage.text), question.id


def test_only_missing_and_confused_rows_have_an_unstated_hop() -> None:
    for question in rows("none") + rows("external_knowledge"):
        assert not unstated(question), question.id


def years(text: str) -> list[int]:
    return [int(year) for year in re.findall(r"\b(?:1\d|20)\d\d\b", text)]


def test_a_withheld_date_is_not_settled_by_other_years() -> None:
    """Who died in 1909 died before someone born in 1955, whenever that one died."""
    checked = 0
    for question in rows("missing_evidence"):
        (gap,) = unstated(question)
        if "comparison" not in question.kind or gap.relation not in DATES:
            continue
        known = next(t for t in question.evidence[-2:] if t != gap)
        other = when(known.tail).year
        told = years(" ".join(p.text for p in about(question, gap.head)))
        checked += 1
        if told and gap.relation == "date of death":
            assert max(told) < other < min(told) + 100, question.id
        elif told:
            assert other < min(told), question.id
    assert checked > 20


def test_an_unstated_hop_has_no_shortcut_to_the_answer() -> None:
    for question in rows("missing_evidence"):
        if "comparison" in question.kind or question.kind == "intersection":
            continue
        (gap,) = unstated(question)
        last = question.evidence[-1]
        for triple in question.evidence[: question.evidence.index(gap) + 1]:
            for passage in about(question, triple.head):
                assert not says(passage.text, last), question.id


def test_no_distractor_leads_around_an_unstated_place() -> None:
    """A school's town, in a passage of its own, would tell the country that is withheld."""
    for question in rows("missing_evidence"):
        (gap,) = unstated(question)
        own = " ".join(p.text for p in about(question, gap.head))
        for passage in question.passages:
            place = passage.title.partition(",")[0]
            if gap.relation == "country" and not passage.is_gold and place in own:
                assert not says(passage.text, gap), question.id


@cache
def remarks(*keys: str) -> re.Pattern[str]:
    """The sentences that writers may make of some of their remarks."""
    told = [one for name in names() for key in keys for one in writer(name).remarks.get(key, [])]
    return re.compile("|".join(
        ".+".join(re.escape(part) for part in re.split(r"\{[^}]*\}", one.text)) for one in told
    ))  # fmt: skip


def test_external_knowledge_names_both_ends_without_the_relation() -> None:
    for question in rows("external_knowledge"):
        silent = 0
        for triple in question.evidence:
            said = [s for p in about(question, triple.head) for s in p.sentences if says(s, triple)]
            said += [s for p in about(question, triple.tail) for s in p.sentences
                     if base(triple.head) in s]  # fmt: skip
            beside = f"beside {triple.relation}"
            silent += all(map(remarks(beside, f"{beside} of a person").fullmatch, said))
        assert silent, question.id


def test_confused_rows_hold_two_namesakes() -> None:
    for question in rows("entity_confusion"):
        text = gold_text(question)
        names = [base(t.head) for t in question.evidence] + [base(t.tail) for t in question.evidence]
        spelled = {name: set(re.findall(re.escape(name) + EPITHET_OR_PLACE, text)) for name in names}
        two_spellings = any(len(found) > 1 for found in spelled.values())
        apart = remarks("apart hatnote", "apart remark")
        told = [s for _, p in question.gold for s in p.sentences if apart.fullmatch(s)]
        years = sorted(int(y) for y in re.findall(r"\b(1[5-9]\d\d|20\d\d)\b", text))
        assert two_spellings or told or years[-1] - years[0] > 100, question.id


def test_a_confused_relative_is_told_apart_by_trade_or_century() -> None:
    checked = 0
    for question in rows("entity_confusion"):
        first = question.evidence[0]
        if "comparison" in question.kind or question.hops != 2 or first.relation not in KIN:
            continue
        text = " ".join(p.text for p in about(question, first.head))
        for _, passage in question.gold:
            trade = re.search(r" \(([^)]*)\)$", passage.title)
            if trade and base(passage.title) == base(first.tail):
                checked += 1
                apart = min(years(text)) - max(years(passage.text)) > 20
                said = [s for p in about(question, first.head) for s in p.sentences]
                told = [s for s in said if remarks("apart remark").fullmatch(s)]
                assert apart or any(trade[1] in s for s in told), question.id
    assert checked > 3


EPITHET_OR_PLACE = r"( the Elder| the Younger| Sr\.| Jr\.|(?:, | \(| in )\S+ (?:Province|County|Region|District))?"


def test_wrong_answers_contradict_the_text() -> None:
    for question in rows("wrong_answer"):
        if "comparison" in question.kind:
            assert base(question.answer) != comparison_answer(question), question.id
        else:
            wrong = Triple("", question.evidence[-1].relation, question.answer)
            assert not says(gold_text(question), wrong), question.id


def test_ambiguous_rows_allow_two_answers() -> None:
    ways: Counter[str] = Counter()
    for question in rows("ambiguous_question"):
        text = gold_text(question)
        titles = Counter(base(p.title) for _, p in question.gold if " film)" in p.title)
        if "comparison" in question.kind:
            assert when(question.evidence[-1].tail) == when(question.evidence[-2].tail)
            ways["tie"] += 1
        elif max(titles.values(), default=0) > 1:
            (twice,) = [title for title, count in titles.items() if count > 1]
            assert twice in question.question
            assert not re.search(r"\b(18|19|20)\d\d\b", question.question)
            ways["namesakes"] += 1
        else:
            tails = [re.escape(t.tail) for t in question.evidence]
            joined = [t for t in tails if re.search(rf"{t} and \w|[\w.] and {t}", text)]
            assert joined, question.id
            ways["two values"] += 1
    assert set(ways) == {"tie", "namesakes", "two values"}


def test_tied_people_were_grown_up_when_they_made_their_works() -> None:
    for question in rows("ambiguous_question"):
        if "comparison" in question.kind and question.evidence[-1].relation == "date of birth":
            for triple in question.evidence[-2:]:
                born = when(triple.tail).year
                text = " ".join(p.text for p in about(question, triple.head))
                made = [int(y) for y in re.findall(r"\((\d{4})\)\.", text)]
                assert all(year >= born + 20 for year in made), question.id


def test_namesake_films_lead_to_different_answers() -> None:
    for question in rows("ambiguous_question"):
        films = [p for _, p in question.gold if base(p.title) in question.question
                 and p.title.endswith(" film)")]  # fmt: skip
        if len(films) == 2 and question.evidence[0].relation == "country of origin":
            stated = [says(p.text, question.evidence[0]) for p in films]
            assert sorted(stated) == [False, True], question.id


def test_people_meet_their_contemporaries_only() -> None:
    met = [
        abs(person.start_year - other.start_year)
        for person in make_world(Random("contemporaries"), partial(write_article, [writer("plain")])).by_kind["person"]
        for other in person.facts["_near"]
        if isinstance(other, Entity) and other.kind == "person"
    ]
    assert len(met) > 10
    assert max(met) < 40


def test_names_are_not_given_away_by_a_years_old_film_title() -> None:
    for question in rows("none"):
        if question.evidence[0].relation == "publication date":
            assert not re.search(r"\b(18|19|20)\d\d\b", question.question)


def test_a_new_noise_type_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    def shout(draft: Draft) -> bool:
        draft.question = draft.question.upper()
        return True

    monkeypatch.setattr(noise, "NOISE", {"shouted": (1.0, shout)})
    made = list(generate(Spec(rows=20, seed=4, noise=1.0)))
    assert {truth for _, truth in made} == {"shouted"}
    assert all(question.question.isupper() for question, _ in made)


# -------------------------------------------------------------------------------- rows and specs


def test_rows_round_trip_through_json() -> None:
    for question, truth in noisy()[:400]:
        row = json.loads(json.dumps(to_row(question, truth), ensure_ascii=False))
        assert row["truth"] == truth
        assert parse(row, "validation") == question
        del row["truth"]
        assert parse(row, "validation") == question


def broken(**changes: object) -> dict[str, object]:
    question, truth = next(generate(Spec(rows=1, seed=6)))
    row = {**to_row(question, truth), **changes}
    return {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"question": None}, "missing field 'question'"),
        ({"answer": ""}, "it has no answer"),
        ({"passages": []}, "passages is empty"),
        ({"passages": [{"title": "Oru", "sentences": [" "], "is_gold": True}]}, "empty"),
        ({"passages": [{"title": "Oru", "is_gold": True}]}, "sentences"),
        ({"decomposition": [{"question": "?", "answer": "!", "passage": 99}]}, "passage is 99"),
        ({"evidence": [{"head": "Oru"}]}, "relation"),
        ({"hops": "two"}, "hops"),
        ({"truth": None, "paragraphs": []}, "musique"),
    ],
)
def test_bad_rows_are_refused_with_a_reason(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(RowError, match=reason):
        parse_row(broken(**changes), "synthetic", "validation")


def test_spec_is_read() -> None:
    assert parse_spec("rows=20000, seed=7,noise=0.2") == Spec(20000, 7, 0.2)
    assert parse_spec("rows=5") == Spec(5, 0, 0.12)
    assert parse_spec("rows=5,writer=dense") == Spec(5, writer="dense")


@pytest.mark.parametrize(
    "text",
    ["", "20000", "rows=", "rows=0", "rows=-3", "seed=7", "rows=10,noise=1.2", "rows=10,noise=nan",
     "rows=10,size=3", "rows=10,rows=11", "rows=1.5", "rows=250,seed=١", "rows=١٠", "rows=1_0",
     "rows=10000001"],
)  # fmt: skip
def test_bad_spec_says_how_to_write_one(text: str) -> None:
    with pytest.raises(UserError, match=r"rows=20000,seed=7,noise=0\.12"):
        parse_spec(text)
