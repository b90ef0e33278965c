"""The page of traces: what it holds, and what a browser makes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from builders.synthetic import generate, parse_spec
from evaluators.comparison.systems import System
from evaluators.outcomes import Outcome, QuestionRecord, read_outcomes, read_questions
from evaluators.run.command import remove_random_gold
from evaluators.traces.page import read_traces, render_traces, worth, write
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.loop import SCORED
from safe_stepwise.records import Attempt, Feedback, Passage, Sample, Trajectory, Usage, canonical_json
from safe_stepwise.store.files import write_lines
from safe_stepwise.store.names import QUESTIONS, RESULTS, TRAJECTORIES
from safe_stepwise.store.page import embedded
from scripts import evaluate_stepwise
from tests.browsing import BREAKOUTS, chromium, worst_contrast
from tests.makers.outcomes import outcome
from tests.makers.prompting import outcome_of
from tests.makers.prompting import question as two_hops
from tests.safe_stepwise.methods.machines import Script, find
from tests.scripts.test_toy_method import Scouting

HOSTILE = " ".join(BREAKOUTS)


def store(folder: Path, outcomes: list[Outcome], asked: list[QuestionRecord] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / TRAJECTORIES, (one.to_json() for one in outcomes))
    if asked is not None:
        write_lines(folder / QUESTIONS, (one.to_json() for one in asked))
    return folder


def paged(folder: Path) -> Path:
    write(folder, folder / "traces.html")
    return folder / "traces.html"


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the loop did without a model: two generators, all methods, evidence missing.

    Half of the questions are said to be of another benchmark.
    """
    root = tmp_path_factory.mktemp("evaluation")
    made = [q for q, _ in generate(parse_spec("rows=12,noise=0"), split="validation")]
    pages = [{"title": p.title, "text": p.text} for question in made for p in question.passages]
    (root / "corpus.jsonl").write_text("".join(json.dumps(p) + "\n" for p in pages))
    rows = (canonical_json(remove_random_gold(question)) for question in made)
    write_lines(root / "questions.jsonl", rows)
    evaluate_stepwise.main(
        [
            f"--questions={root / 'questions.jsonl'}", f"--corpus={root / 'corpus.jsonl'}",
            "--method=no_verification", "--method=self_verification", "--method=safe",
            "--generator=symbolic:error_rate=0.4", "--generator=symbolic:error_rate=0.1,seed=4",
            "--verifier=symbolic", "--judge=symbolic",
            f"--output={root / 'out'}", f"--cache={root / 'cache.sqlite'}",
        ]
    )  # fmt: skip
    folder = root / "out"
    asked = [replace(q, benchmark=named(q.id)) for q in read_questions(folder)]
    store(folder, [replace(o, benchmark=named(o.question_id)) for o in read_outcomes(folder)], asked)
    return folder


def named(question: str) -> str:
    return "odd" if int(question.rpartition("-")[2]) % 2 else "even"


@pytest.fixture(scope="module")
def browser(evaluation: Path, stateful: list[Outcome]) -> Iterator[Any]:
    # After the evaluations: no other event loop can run in this thread while Playwright's does.
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="module")
def page_file(evaluation: Path) -> Path:
    return paged(evaluation)


def counted(page: Any) -> tuple[int, int]:
    """Trajectories and questions that the page says it shows."""
    text = page.locator("#count").inner_text()
    if text == "Nothing fits these filters.":
        return 0, 0
    found = re.fullmatch(r"([\d,]+) of [\d,]+ trajectories, ([\d,]+) of [\d,]+ questions", text)
    assert found, text
    return int(found[1].replace(",", "")), int(found[2].replace(",", ""))


def until(page: Any, text: str) -> None:
    """Wait for the count to say so: the search begins when the typing has ended."""
    page.locator("#count", has_text=re.compile(f"^{text}")).wait_for()


def choose(page: Any, label: str, start: str) -> None:
    select = page.get_by_label(label, exact=True)
    options = select.locator("option").all_text_contents()
    select.select_option(label=next(text for text in options if text.startswith(f"{start} (")))


def address(one: Outcome) -> str:
    """The documented form of a deep link."""
    system = System.make(one.method, one.players, one.options, one.conditions)
    told = (*system.players, *system.options, *system.conditions)
    named = [f"{name}={value}" for name, value in told]
    parts = (one.benchmark, one.question_id, one.method, *named)
    return "#" + "/".join(quote(str(part), safe="!'()*~") for part in parts)


# ------------------------------------------------------------------------------------ in a browser


@pytest.mark.parametrize(
    ("label", "choice", "fits"),
    [
        ("Benchmark", "odd", lambda o: o.benchmark == "odd"),
        ("Method", "SAFE", lambda o: o.method == "safe"),
        ("Generator", "symbolic:error_rate=0.4", lambda o: "0.4" in o.players["generator"]),
        ("Error type", "Missing Evidence", lambda o: "Missing Evidence" in errors(o)),
        ("Error type", "Contradictory", lambda o: "Contradictory" in errors(o)),
        ("Outcome", "right", lambda o: o.verdict == "correct"),
        ("Outcome", "wrong", lambda o: o.verdict == "incorrect"),
    ],
)
def test_each_filter_shows_what_fits(
    visit: Callable[..., Any],
    page_file: Path,
    evaluation: Path,
    label: str,
    choice: str,
    fits: Callable[[Outcome], bool],
) -> None:
    found = [*read_outcomes(evaluation)]
    wanted = [one for one in found if fits(one)]
    assert 0 < len(wanted) < len(found)
    page = visit(page_file)
    full = next(o.players["generator"] for o in wanted) if label == "Generator" else choice
    choose(page, label, full)
    asked = {(one.benchmark, one.question_id) for one in wanted}
    assert counted(page) == (len(wanted), len(asked))
    assert page.locator("#list li").count() == len(asked)
    assert page.locator("#list .badge:not(.dim)").count() == len(wanted)
    total = page.locator("#table tr.all td").first.text_content()
    assert total == f"{len(wanted):,}"
    page.get_by_role("button", name="Clear").click()
    assert counted(page)[0] == len(found)


def errors(one: Outcome) -> set[str]:
    return {a.feedback.error_type for a in one.trajectory.attempts if a.feedback}


def test_filters_go_together_and_search_reads_every_text(
    visit: Callable[..., Any], page_file: Path, evaluation: Path
) -> None:
    found = [*read_outcomes(evaluation)]
    asked = [*read_questions(evaluation)]
    tries = [a for o in found for a in o.trajectory.attempts if a.feedback and not a.accepted]
    said = tries[0].feedback
    assert said
    page = visit(page_file)
    search = page.get_by_label("Search")
    for text in (tries[0].text, said.diagnosis.upper(), asked[3].question, asked[0].id):
        fitting = [o for o in found if text.lower() in words(o, asked).lower()]
        assert 0 < len(fitting) < len(found)
        search.fill(f" {text} ")
        until(page, f"{len(fitting)} of {len(found)} trajectories")
    choose(page, "Method", "No verification")
    assert counted(page) == (2, 1)
    search.fill("no such words")
    until(page, "Nothing fits")
    assert counted(page) == (0, 0)
    assert page.locator("#list li").count() == 0


def words(one: Outcome, asked: list[QuestionRecord]) -> str:
    texts = [one.trajectory.answer]
    for question in asked:
        if question.id == one.question_id:
            texts += [question.id, question.question, *question.references]
    for attempt in one.trajectory.attempts:
        said = attempt.feedback
        parts = (said.error_type, said.diagnosis, said.guidance, said.query or "") if said else ()
        texts += [attempt.text, *parts]
    return "\n".join(texts)


def test_details_hold_all_that_was_recorded(visit: Callable[..., Any], page_file: Path, evaluation: Path) -> None:
    asked = {q.id: q for q in read_questions(evaluation)}
    one = next(
        o for o in read_outcomes(evaluation) if o.method == "safe" and any(a.retrieved for a in o.trajectory.attempts)
    )
    question, attempts = asked[one.question_id], one.trajectory.attempts
    page = visit(page_file, address(one))
    details = page.locator("#details")
    assert details.locator("h2").inner_text() == question.question
    shown = details.inner_text()
    for text in (*question.references, one.judge, *one.players.values(), one.question_id):
        assert text in shown
    assert details.locator("dd strong").inner_text() == one.trajectory.answer
    cards = details.locator(".attempt").all()
    assert len(cards) == len(attempts) > len(one.trajectory.steps)
    for card, attempt in zip(cards, attempts, strict=True):
        text = card.inner_text()
        said = attempt.feedback
        assert said
        for part in (attempt.text, said.error_type, said.diagnosis, said.guidance, said.query):
            assert (part or "") in text
        assert f"Step {attempt.number}" in card.locator("header b").inner_text()
        fate = card.locator(".fate").inner_text()
        assert fate.startswith("accepted" if attempt.accepted else "rejected")
        for passage in attempt.retrieved:
            assert passage.title in text
    retrieved = [p for a in attempts for p in a.retrieved]
    passages = details.locator(".passage")
    assert passages.count() == len(question.passages) + len(retrieved)
    assert details.locator(".tag.gold").count() == sum(p.is_gold for p in question.passages)
    assert details.locator(".tag.retrieved").count() == len(retrieved)
    assert not passages.nth(0).locator("p").is_visible()
    details.get_by_role("button", name="Open all").click()
    texts = passages.locator("p").all_inner_texts()
    assert texts == [p.text for p in (*question.passages, *retrieved)]
    details.get_by_role("button", name="Close all").click()
    details.locator(".said .reference").first.click()
    assert details.locator(".passage[open]").count() == 1


def test_other_methods_are_one_click_away_and_links_lead_back(
    visit: Callable[..., Any], page_file: Path, evaluation: Path
) -> None:
    found = [*read_outcomes(evaluation)]
    one = found[-1]
    others = [o for o in found if o.question_id == one.question_id]
    page = visit(page_file, address(one))
    links = page.locator(".runs a")
    assert links.count() == len(others) == 6
    for place, other in enumerate(others):
        links.nth(place).click()
        page.locator(f".runs tr.chosen:nth-child({place + 1})").wait_for()  # the page draws after its address changes
        assert page.evaluate("location.hash") == address(other)
        assert page.locator("#details .attempt").count() == len(other.trajectory.attempts)
        assert page.locator(".runs .chosen a").evaluate("e => e === document.activeElement")
    page.go_back()
    page.locator(".runs tr.chosen:nth-child(5)").wait_for()
    assert page.evaluate("location.hash") == address(others[4])
    page.evaluate("location.hash = '#no/such'")
    page.get_by_role("alert").wait_for()


def test_the_keys_walk_through_the_list(visit: Callable[..., Any], page_file: Path, evaluation: Path) -> None:
    texts = [q.question for q in read_questions(evaluation)]
    page = visit(page_file)
    headline = page.locator("#details h2")
    assert headline.inner_text() == texts[0]
    page.locator(".runs a").nth(2).click()
    page.locator("#list a").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert headline.inner_text() == texts[2]
    assert page.locator("#list a[aria-current]").evaluate("e => e === document.activeElement")
    assert "/safe/" in page.evaluate("location.hash")  # the method in view stays
    for elsewhere in ("#filter-text", ".runs a:not([aria-current])"):
        page.locator(elsewhere).first.press("ArrowDown")
        assert headline.inner_text() == texts[2]
    before = page.evaluate("location.hash")
    page.locator(".skip").press("Enter")
    assert page.locator("#details").evaluate("e => e === document.activeElement")
    assert page.evaluate("location.hash") == before
    for _ in range(len(texts)):
        page.evaluate("move(1)")
    assert headline.inner_text() == texts[-1]


def test_totals_are_those_of_the_results(visit: Callable[..., Any], page_file: Path, evaluation: Path) -> None:
    page = visit(page_file)
    rows = page.locator("#table tr.system").all()
    runs = json.loads((evaluation / RESULTS).read_bytes())["runs"]
    for row, run in zip(rows, runs, strict=True):
        cells = row.locator("td").all_text_contents()
        whole = run["all"]
        percents = [100 * whole[name] for name in ("exact_match", "f1", "accuracy")]
        values = [*percents, whole["calls_per_question"], whole["steps_per_question"]]
        assert cells[0] == str(whole["questions"])
        assert [float(cell) for cell in cells[5:10]] == pytest.approx(values, abs=0.0501)
    banner = page.locator("#simulated")
    assert banner.is_visible()
    assert "Simulated. An engine without a model took part here" in banner.inner_text()
    page.get_by_text("Settings of the evaluation").click()
    assert "questions_sha256" in page.locator("#settings").inner_text()


def test_hostile_material_is_shown_as_text(visit: Callable[..., Any], tmp_path: Path) -> None:
    page = visit(paged(hostile(tmp_path / "<b>out")))
    seen = page.evaluate("document.getElementById('details').textContent")
    # What is not seen, yet changes how all behind it is shown, is named.
    hidden = {char: f"⟨U+{ord(char):04X}⟩" for char in "\0\u2028\u2029\u202e\ud800"}
    assert seen.count(HOSTILE.translate(str.maketrans(hidden))) >= 16
    assert page.locator("img, svg, iframe, object, embed, link, base").count() == 0
    assert page.locator("script").count() == 2
    links = page.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert links
    assert all(link.startswith("#") for link in links)
    for key in ("benchmark", "method", "answering", "error"):
        page.locator(f"#filter-{key}").select_option(index=1)
        assert counted(page) == (1, 1)
    page.locator("#list a").click()
    page.reload()
    assert page.locator("#details .attempt").count() == 2
    assert page.title() == "Traces: <b>out"


def hostile(folder: Path) -> Path:
    passage = Passage(HOSTILE, (HOSTILE,), True)
    usage = {HOSTILE: Usage(9, 4, 1), "constructor": Usage(9, 4, 1)}
    said = Feedback(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    attempts = (
        Attempt(1, HOSTILE, said, False, usage, (passage,), HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        Attempt(1, HOSTILE, None, True, read={HOSTILE: [HOSTILE]}),
    )
    one = outcome(
        HOSTILE,
        HOSTILE,
        trajectory=Trajectory(HOSTILE, HOSTILE, (), attempts, HOSTILE, HOSTILE),
        benchmark=HOSTILE,
        players={HOSTILE: HOSTILE, "__proto__": HOSTILE},
        options={HOSTILE: HOSTILE, "__proto__": 3},
        judge=HOSTILE,
    )
    store(folder, [one], [QuestionRecord(HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), (passage,))])
    settings = {"settings": {HOSTILE: [HOSTILE, None, {HOSTILE: True}]}}
    (folder / RESULTS).write_text(json.dumps(settings))
    return folder


def test_the_policy_of_the_page_forbids_network_and_foreign_scripts(browser: Any, page_file: Path) -> None:
    page = browser.new_page()
    ended: dict[str, str | None] = {}
    page.on("requestfinished", lambda request: ended.update({request.url: None}))
    page.on("requestfailed", lambda request: ended.update({request.url: request.failure}))
    page.goto(page_file.as_uri())
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.pwned = 1";
          const image = new Image();
          image.src = "http://127.0.0.1:9/x.png";
          document.body.append(script, image);
          return fetch("http://127.0.0.1:9/").catch(() => 0);
        }"""
    )
    assert page.evaluate("window.pwned") is None
    own = page_file.as_uri()
    assert ended[own] is None
    assert {reason for url, reason in ended.items() if url != own} <= {"csp"}
    page.close()


def odd_ends() -> list[Outcome]:
    alone = {"generator": Usage(1_000, 600, 10)}
    both = {**alone, "verifier": Usage(2_000, 1_500, 20)}
    wrong, right = Feedback("Unsupported", "d", "g"), Feedback("Correct", "d", "g")
    unread = Feedback("Unread", "u", "w")

    def ended(method: str, stop: Any, *attempts: Attempt) -> Trajectory:
        answer = "" if stop == "failed" else "x"
        return Trajectory("q", method, (), attempts, answer, stop)

    forced = ended(
        "safe",
        "answered",
        Attempt(1, "", Feedback("Malformed", "m", "n"), False, alone),
        Attempt(1, "b", unread, False, both, verdict='{"label": 1}'),
        Attempt(1, "c", wrong, True, both),
        Attempt(2, "d", right, True, both),
    )
    broken = ended("safe", "failed", Attempt(1, "b", None, False, alone))
    asked = Attempt(2, "x", None, True, state="final answer")
    late = ended("no_verification", "max_steps", Attempt(1, "a", None, True), asked)
    silent = ended("no_verification", "max_steps", replace(asked, accepted=False))
    return [
        outcome("q1", verdict=None, trajectory=forced),
        outcome("q2", score=0.0, trajectory=broken),
        outcome("q3", "no_verification", verdict="unscored", trajectory=late),
        outcome("q4", "no_verification", score=0.0, verdict=None, trajectory=silent),
        outcome("q5", max_retries=0),
    ]


def test_every_end_of_a_question_is_told_apart(visit: Callable[..., Any], tmp_path: Path) -> None:
    ends = odd_ends()
    assert [worth(one) for one in ends] == ["right", "failed", "unscored", "wrong", "right"]
    page = visit(paged(store(tmp_path / "out", ends)))
    notes = page.locator("#notes").inner_text()
    assert "no questions.jsonl" in notes
    assert "no results.json" in notes
    assert "For 2 trajectories no judge was asked: right and wrong go by exact match." in notes
    assert not page.locator("#simulated").is_visible()
    choose(page, "Options", "K=10, N=0")
    assert counted(page) == (1, 1)
    page.get_by_role("button", name="Clear").click()
    fates = []
    for one in ends:
        page.evaluate("hash => { location.hash = hash; }", address(one))
        page.locator("h2", has_text=one.question_id).wait_for()
        fates.append(page.locator(".fate").all_inner_texts())
        if one.question_id == "q1":
            card = page.locator(".attempt").nth(1)
            assert not card.locator(".raw").is_visible()
            card.locator("summary").click()
            assert card.locator(".raw").inner_text() == '{"label": 1}'
            tokens = "Tokens · generator: 1,000 prompt (600 cached), 10 completion · verifier: 2,000"
            assert tokens in card.inner_text()
            assert "none asked: right and wrong go by exact match" in page.locator(".facts").inner_text()
            assert "4 calls, 4,000 prompt (2,400 cached), 40 completion" in page.locator(".facts").inner_text()
        if one.question_id == "q2":
            assert page.locator(".broken").is_visible()
    assert fates == [
        ["rejected", "rejected", "accepted: retries used up", "accepted"],
        ["not verified: the request failed"],
        ["accepted, not verified", "accepted: asked for as the answer"],
        ["holds no answer"],
        [],
    ]


def test_sampled_chains_can_be_read(visit: Callable[..., Any], tmp_path: Path) -> None:
    """Each with its answer, its score and the verdicts on its steps; the one that was chosen is marked."""
    chains = [(Attempt(1, f"Step 1: {text}", None, True),) for text in ("a", "b")]
    verdict = Attempt(1, "Step 1: b", Feedback("Unsupported", "Nobody says b.", "", score=0.25), True, state=SCORED)
    sampled = (
        Sample("x", chains[0], "answered", score=0.9),
        Sample("y", (*chains[1], verdict), "failed", "cut", 0.25),
    )
    chosen = Trajectory("q1", "safe", (), chains[0], "x", "answered", sampled=sampled)
    page = visit(paged(store(tmp_path / "out", [outcome("q1", trajectory=chosen)])))
    assert page.locator(".sample summary").all_inner_texts() == [
        "Sample 1: x score 0.90 ✓ chosen",
        "Sample 2: y score 0.25",
    ]
    assert not page.locator(".sample .attempt").first.is_visible()
    page.locator(".sample summary").nth(1).click()
    judged = page.locator(".sample").nth(1)
    assert judged.locator(".attempt header").all_inner_texts() == ["Step 1\njudged\nUnsupported"]
    assert "Nobody says b." in judged.inner_text()
    assert "a request failed for good, which ended the question. cut" in judged.inner_text()
    page.get_by_label("Search").fill("nobody says")
    until(page, "1 of 1")


def test_a_method_with_roles_states_and_ends_of_its_own(
    visit: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "scouting", Scouting())
    scout, writer = {"scout": Usage(1_000, 600, 10)}, {"writer": Usage(70, 0, 7)}
    attempts = (
        Attempt(1, "none", None, False, scout, state="q2 Search", next_state="q2 Search"),
        Attempt(2, "a", None, True, scout, state="q2 Search", read={"page": 1}, next_state="q4"),
        Attempt(3, "x", None, True, writer, state="q4", read="Oru"),
    )
    gave_up = Trajectory("q1", "scouting", (), attempts, "x", "gave_up")
    one = outcome("q1", "scouting", players={"scout": "reader", "writer": "model"},
                  options={"looks": 2}, trajectory=gave_up)  # fmt: skip
    plain = outcome("q1", "no_verification")
    folder = store(tmp_path / "out", [one, plain])
    page = visit(paged(folder), address(one))
    assert address(one) == "#musique/q1/scouting/writer%3Dmodel/scout%3Dreader/looks%3D2"
    assert page.locator(".attempt header").all_inner_texts() == [
        "Step 1\nq2 Search → q2 Search\nnot accepted",
        "Step 2\nq2 Search → q4\naccepted, not verified",
        "Step 3\nq4\naccepted, not verified",
    ]
    assert page.locator(".feedback").all_inner_texts() == ["Read: page\n1", "Read\nOru"]
    facts = page.locator(".facts").inner_text()
    for line in ("Ended\ngave_up", "Method\nScouting · looks=2", "Writer\nmodel", "Scout\nreader",
                 "Scout's cost\n2 calls, 2,000 prompt (1,200 cached), 20 completion tokens",
                 "Writer's cost\n1 calls, 70 prompt (0 cached), 7 completion tokens"):  # fmt: skip
        assert line in facts
    assert "Tokens · scout: 1,000 prompt" in page.locator(".attempt").nth(1).inner_text()
    groups = page.locator("#table th.group").all_text_contents()
    assert groups == ["Writer's tokens", "Scout's tokens"]
    choose(page, "Method", "Scouting")
    assert counted(page) == (1, 1)
    page.get_by_label("Search").fill('{"page":1}')
    until(page, "1 of 2")
    choose(page, "Options", "K=10, N=3")
    assert counted(page) == (0, 0)


def mended(id_: str, method: str, **changes: Any) -> Outcome:
    """An answer with a step that was rejected, and accepted when it was written anew."""
    wrong, right = Feedback("Off-topic", "No.", "Do."), Feedback("Correct", "Yes.", "Go on.")
    tries = (Attempt(1, "a", right, True), Attempt(2, "b", wrong, False),
             Attempt(2, "c", right, True))  # fmt: skip
    return outcome(id_, method, trajectory=Trajectory(id_, method, (), tries, "x", "answered"),
                   **changes)  # fmt: skip


def test_it_begins_with_a_step_that_was_rejected(visit: Callable[..., Any], tmp_path: Path) -> None:
    """Of a right answer under another's eyes, if there is any; the page opens at its top, a click from that step."""
    found = [outcome(f"q{n}") for n in range(300)]
    found += [mended("r0", "self_verification"), mended("r1", "safe", score=0)]
    long = tuple(Passage(f"P{n}", ("x " * 300,), True) for n in range(20))
    asked = [QuestionRecord("musique", "r2", "Which?", ("x",), long)]
    page = visit(paged(store(tmp_path / "out", [*found, mended("r2", "safe")], asked)))
    assert page.locator("#details h2").inner_text() == "Which?"
    assert page.locator("#details h2").bounding_box()["y"] < 900
    assert page.evaluate("scrollY") == 0
    page.locator(".rejections button").first.click()
    head, card = (page.locator(name).bounding_box() for name in (".headline", ".attempt.rejected"))
    assert head["y"] + head["height"] <= card["y"] < card["y"] + card["height"] <= 900
    assert page.locator("#list a[aria-current]").is_visible()
    page = visit(paged(store(tmp_path / "less", found)))
    assert page.locator("#details h2").inner_text() == "r0"
    page.get_by_role("button", name="Step 2").click()
    assert page.locator(".attempt.rejected").evaluate("e => e === document.activeElement")
    assert page.locator(".attempt .uptake").all_inner_texts() == ["mended"]  # beside the retry alone
    page = visit(paged(store(tmp_path / "none", found[:2])))
    assert page.locator("#details h2").inner_text() == "q0"
    assert page.locator(".rejections").count() == 0


def within(page: Any, selector: str) -> bool:
    """Whether all such elements are whole in view, without any scrolling."""
    size = page.viewport_size
    boxes = [e.bounding_box() for e in page.locator(selector).all()]
    return bool(boxes) and all(
        b and b["x"] >= 0 <= b["y"] and b["x"] + b["width"] <= size["width"] and b["y"] + b["height"] <= size["height"]
        for b in boxes
    )


def test_filters_are_in_view_at_once_or_one_tap_away(visit: Callable[..., Any], page_file: Path) -> None:
    controls = "#filters select, #filters input"
    assert within(visit(page_file), controls)
    page = visit(page_file, viewport={"width": 390, "height": 844})
    assert not page.locator("#filters").is_visible()
    page.locator("#folded").click()
    assert within(page, controls)
    choose(page, "Method", "SAFE")
    assert page.locator("#folded").inner_text() == f"Filters · {page.locator('#count').inner_text()}"


def test_a_phone_shows_the_trace_first_and_keeps_question_and_verdict_in_sight(
    visit: Callable[..., Any], page_file: Path
) -> None:
    page = visit(page_file, viewport={"width": 390, "height": 844})
    assert within(page, ".headline")
    top = page.locator("#details h3").first
    assert top.inner_text() == "Steps"
    assert page.locator("#details").bounding_box()["y"] < page.locator("#questions").bounding_box()["y"]
    page.locator(".attempt").last.scroll_into_view_if_needed()
    assert within(page, ".headline h2, .headline .outcome")
    assert page.locator(".headline .outcome").inner_text().startswith(("✓ right", "✗ wrong"))
    first = page.locator("#details h2").inner_text()
    page.get_by_role("button", name="Next question").click()
    assert page.locator("#details h2").inner_text() != first
    assert within(page, ".headline")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_marks_are_explained(visit: Callable[..., Any], page_file: Path, tmp_path: Path) -> None:
    page = visit(page_file)
    assert page.locator("#marks summary").inner_text() == "✓ right ✗ wrong by system"
    page.locator("#marks summary").click()
    assert page.locator("#marks li").count() == 6
    badges = page.locator("#list li").first.locator(".badge").all_inner_texts()
    assert [badge[2:] for badge in badges] == ["1", "2", "3", "4", "5", "6"]
    few = visit(paged(store(tmp_path / "few", [outcome("q0"), outcome("q1", score=0)])))
    assert few.locator("#marks").inner_text() == "✓ right ✗ wrong"
    assert few.locator("#list .badge").all_inner_texts() == ["✓ SAFE", "✗ SAFE"]


def test_the_table_of_scores_scrolls_on_a_phone_beside_the_methods(visit: Callable[..., Any], page_file: Path) -> None:
    page = visit(page_file, viewport={"width": 390, "height": 844})
    page.get_by_text("Scores and costs").click()
    pane, last = page.locator("#table .scroll"), page.locator("#table tr.system td").nth(12)
    assert last.bounding_box()["x"] > 390
    pane.evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    assert page.locator("#table tr.system td").nth(15).bounding_box()["x"] < 390
    assert page.locator("#table tr.system th").first.bounding_box()["x"] >= 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_long_list_comes_in_parts(visit: Callable[..., Any], tmp_path: Path) -> None:
    many = [outcome(f"q{n}") for n in range(450)]
    page = visit(paged(store(tmp_path / "out", many)), address(many[420]))
    link = page.locator("#list a[aria-current]")
    assert "q420" in link.inner_text()
    page.goto(page.url.partition("#")[0])
    assert page.locator("#list li").count() < 450
    page.locator("#list li").last.scroll_into_view_if_needed()
    page.locator("#list li:nth-child(400)").wait_for()
    page.locator("#list li").last.scroll_into_view_if_needed()
    page.locator("#list li:nth-child(450)").wait_for()
    assert not page.locator("#more").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_colour_schemes(visit: Callable[..., Any], tmp_path: Path, scheme: str) -> None:
    """WCAG 2.2, 1.4.3: a contrast of 4.5 or more, for every text on the page."""
    page = visit(paged(hostile(tmp_path / "out")), color_scheme=scheme)
    choose(page, "Outcome", "right")
    worst = worst_contrast(page)
    assert worst[0] >= 4.5, worst


# ------------------------------------------------------------------------------- without a browser


@pytest.mark.parametrize("text", BREAKOUTS)
def test_no_text_ends_the_element_that_carries_it(text: str) -> None:
    made = embedded({text: [text]})
    assert not set(made) & set("<>&\u2028\u2029\0")
    assert json.loads(made) == {text: [text]}


def test_same_folder_same_bytes(evaluation: Path, tmp_path: Path) -> None:
    for name in "ab":
        write(evaluation, tmp_path / name / "page.html")
    assert (tmp_path / "a/page.html").read_bytes() == (tmp_path / "b/page.html").read_bytes()
    page = render_traces(read_traces(evaluation))
    assert str(evaluation) not in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ('"exact_match":1.0', '"exact_match":"much"'),
        ('"exact_match":1.0', '"exact_match":NaN'),
        ('"max_retries":3', '"max_retries":"three"'),
        ('"players":{', '"players":7,"roles":{'),
        ('"prompt":1000', '"prompt":"many"'),
        ('"attempts":[', '"attempts":[7,'),
    ],
)
def test_a_line_of_the_wrong_kind_is_named(tmp_path: Path, part: str, changed: str) -> None:
    folder = store(tmp_path, odd_ends()[:1] * 2)
    first, second = (folder / TRAJECTORIES).read_text().splitlines()
    assert part in second
    (folder / TRAJECTORIES).write_text(f"{first}\n{second.replace(part, changed)}\n")
    with pytest.raises(UserError, match=r"trajectories.jsonl, line 2: cannot be read .*anew"):
        read_traces(folder)


@pytest.mark.parametrize("line", ["{", '{"benchmark": 1}'])
def test_a_question_that_cannot_be_read_is_named(tmp_path: Path, line: str) -> None:
    folder = store(tmp_path, odd_ends())
    (folder / QUESTIONS).write_text(f"{line}\n")
    with pytest.raises(UserError, match=r"questions.jsonl, line 1: cannot be read"):
        read_traces(folder)


def test_numbers_of_the_settings_are_numbers(tmp_path: Path) -> None:
    folder = store(tmp_path, odd_ends())
    said = {"seed": 0, "repeats": 1, "share": 1.0, "skips": True, "examples": False, "judge": None}
    (folder / RESULTS).write_text(json.dumps({"settings": said}))
    assert [value for _, value in read_traces(folder)["settings"]] == [
        "0", "1", "1.0", "yes", "no", "none",
    ]  # fmt: skip


def test_a_record_that_is_none_is_named(tmp_path: Path) -> None:
    folder = store(tmp_path, odd_ends())
    for text in ("{", "[]", '{"settings": 3}'):
        (folder / RESULTS).write_text(text)
        with pytest.raises(UserError, match=r"results.json: cannot be read"):
            read_traces(folder)


# --------------------------------------------------------------------------- methods with states


VOTED = [json.dumps({"answer": said, "explain": "So."}) for said in ("the Oru", "Kel", "Oru")] + ["So.\nAnswer: Kel"]


@pytest.fixture(scope="module")
def stateful() -> list[Outcome]:
    """SG-FSM's machine in three ways, and a method of one reply."""
    broken = Script(decompose=[f"{BREAKOUTS[0]} not JSON"], revise=[BREAKOUTS[1]])
    mended = Script(search=["Well."], revise=[find(), find(2, f"Oru {BREAKOUTS[2]}")])
    return [
        outcome_of("sg_fsm2", Script(), two_hops(id_="q0")),
        outcome_of("sg_fsm2", mended, two_hops(id_="q1")),
        outcome_of("sg_fsm2", broken, two_hops(id_="q2")),
        outcome_of("direct", Script(direct=["So.\nAnswer: Oru"]), two_hops(id_="q0")),
        outcome_of("cot", Script(cot=VOTED), two_hops(id_="q0"), samples=4),
    ]


@pytest.fixture
def machine_page(stateful: list[Outcome], tmp_path: Path) -> Path:
    return paged(store(tmp_path / "machines", stateful))


def test_states_readings_and_revisions_are_shown(
    visit: Callable[..., Any], machine_page: Path, stateful: list[Outcome]
) -> None:
    one = stateful[1]
    page = visit(machine_page, address(one))
    cards = page.locator("#details .attempt").all()
    assert len(cards) == len(one.trajectory.attempts)
    texts = [card.locator("header").inner_text() for card in cards]
    edges = ["q0 Decompose → q2", "q2 Search → q3", "q3 Revise → q4", "q4 Terminate → q0"]
    assert all(edge in text for edge, text in zip(edges, texts, strict=False))
    assert "q6 Summarize → end" in texts[-1]
    assert [("unreadable" in text, "revises q2" in text) for text in texts[:4]] == [
        (False, False), (True, False), (False, True), (False, False),
    ]  # fmt: skip
    read = cards[2].locator(".feedback").inner_text()
    assert "Read: passage" in read
    assert "Ors Velt" in read
    assert "Not strictly" in cards[1].locator(".feedback").inner_text()
    moved = next(card for card in cards if "q5 Done → q6" in card.inner_text())
    assert "nobody was asked" in moved.inner_text()
    facts = page.locator("#details .facts").inner_text()
    assert "Sub answers" in facts
    assert "Failure" not in facts


def test_votes_are_called_replies(visit: Callable[..., Any], machine_page: Path, stateful: list[Outcome]) -> None:
    page = visit(machine_page, address(stateful[4]))
    heads = page.locator("#details .attempt header b").all_inner_texts()
    assert heads == [f"Reply {n}" for n in range(1, 5)]
    assert page.locator("#details h3").first.inner_text() == "Replies"
    page = visit(machine_page, address(stateful[3]))
    assert page.locator("#details .attempt header b").inner_text() == "Reply 1"
    page = visit(machine_page, address(stateful[0]))
    assert page.locator("#details .attempt header b").first.inner_text() == "Step 1"


@pytest.mark.parametrize(
    ("label", "choice", "wanted"),
    [
        ("State", "q3 Revise", 1),
        ("State", "q6 Summarize", 2),
        ("State", "answer", 2),
        ("Ended", "answered", 3),
        ("Ended", "withdrawn: given up without an answer", 1),
        ("Ended", "the reply could not be read", 1),
    ],
)
def test_filters_by_state_and_by_way_of_ending(
    visit: Callable[..., Any], machine_page: Path, label: str, choice: str, wanted: int
) -> None:
    page = visit(machine_page)
    choose(page, label, choice)
    assert counted(page)[0] == wanted


def test_there_is_no_such_filter_where_nothing_differs(visit: Callable[..., Any], tmp_path: Path) -> None:
    page = visit(paged(store(tmp_path / "loop", [outcome("q0"), outcome("q1", score=0)])))
    assert page.get_by_label("State", exact=True).count() == 0
    assert page.get_by_label("Ended", exact=True).count() == 0


def test_hostile_replies_and_states_are_text(
    visit: Callable[..., Any], tmp_path: Path, stateful: list[Outcome]
) -> None:
    found = stateful
    first = found[1].trajectory
    odd = replace(
        first.attempts[0],
        state=BREAKOUTS[0],
        next_state=BREAKOUTS[4],
        read={"form": BREAKOUTS[1], "value": {HOSTILE: [HOSTILE]}, "why": HOSTILE, "revises": HOSTILE},
    )
    changed = replace(first, attempts=(odd, *first.attempts), stop_reason=HOSTILE)
    strange = replace(found[1], trajectory=changed, question_id="x")
    page = visit(paged(store(tmp_path / "out", [*found, strange])), address(strange))
    assert BREAKOUTS[0] in page.locator(".tag.state").first.inner_text()
    assert "window.pwned" in page.locator(".attempt .feedback").first.inner_text()
    assert page.evaluate("window.pwned") is None
    choose(page, "State", BREAKOUTS[0])
    assert counted(page)[0] == 1
