"""What reading costs, and that nothing but a reader's own error comes of it, whatever was replied.

Regular expressions and copies of lists do their work within one call, so the processor's time is
taken besides the calls, and the power of the input fitted by which it grows (`tests.growth`).
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.steps.replies import as_step, read_step_reply, read_trajectory
from builders.steps.rows import StepRefused
from builders.verified.teachers.replies import UnreadableReply, read_groups, read_path, read_triples
from safe_stepwise.feedback import FeedbackError, parse_feedback
from safe_stepwise.methods.loop import read_answer
from safe_stepwise.metric.judge import read_verdict
from safe_stepwise.steps import StepError, parse_step, read_step, unwrap_answer
from safe_stepwise.store.replies import MAX_CHARACTERS, MAX_DEPTH, ReplyError, read_reply
from safe_stepwise.store.thoughts import split_thought
from tests import sizes
from tests.growth import POWER, exponent

VERDICT = '{"error_type": "Correct", "diagnosis": "It is so, by Passage 1.", "guidance": ""}'
JUDGED = '{"verdict": "correct", "explanation": "One river, by two names."}'
PATH = '{"path": [1], "verdict": "none", "explanation": "The one fact holds it all."}'
STEP = "Step 1: Oru lies on the Vel. (Logical)"
INJECTED = json.dumps({"step": STEP, "diagnosis": "No passage says it.", "guidance": "Go."})

Reader = Callable[[str], object]
READERS: dict[str, tuple[Reader, tuple[type[Exception], ...]]] = {
    "reply": (read_reply, ()),
    "answers": (lambda text: read_reply(text).answers("error_type", "a"), (ReplyError,)),
    "outermost": (lambda text: read_reply(text).outermost(lambda _: False), ()),
    "feedback": (parse_feedback, (FeedbackError,)),
    "feedback with its data": (lambda text: parse_feedback(text, data=text), (FeedbackError,)),
    "data": (lambda text: parse_feedback(VERDICT, data=text), (FeedbackError,)),
    "judge": (read_verdict, (ReplyError,)),
    "judge's data": (lambda text: read_verdict(JUDGED, [text]), (ReplyError,)),
    "triples": (read_triples, (UnreadableReply,)),
    "groups": (read_groups, (UnreadableReply,)),
    "path": (lambda text: read_path(text, text), (UnreadableReply,)),
    "trajectory": (lambda text: read_trajectory(text, text), (UnreadableReply,)),
    "injection": (lambda text: read_step_reply(text, text), (UnreadableReply, StepRefused)),
    "step": (parse_step, (StepError,)),
    "step between head and tag": (lambda text: parse_step(f"Step 1: {text} (Logical)"), (StepError,)),
    "final step": (lambda text: parse_step(f"Step 1: {text} (Final Answer)"), (StepError,)),
    "model's step": (read_step, (StepError,)),
    "model's step between head and tag": (lambda text: read_step(f"Step 1: {text} (Logical)"), (StepError,)),
    "model's step behind a line": (lambda text: read_step(f"Here is {text}:\n{STEP}{text}"), (StepError,)),
    "model's final step": (lambda text: read_step(f"**Step 1:** ANSWER: {text} (Final Answer)"), (StepError,)),
    "teacher's step": (lambda text: as_step(text, 1), (StepRefused,)),
    "model's answer": (unwrap_answer, ()),
    "thought": (split_thought, ()),
    "last answer": (lambda text: read_answer(text, 1), ()),
}


def numbered(count: int) -> str:
    return "{" + ",".join(f'"k{number}":{number % 10}' for number in range(count)) + "}"


def nested(opens: str, closes: str) -> Callable[[int], str]:
    return lambda length: opens * (length // len(opens + closes)) + "1" + closes * (length // 9)


def repeated(unit: str) -> Callable[[int], str]:
    return lambda length: unit * (length // len(unit))


UNITS = (
    *('{\\"', '{"', "{", "[", "[{", "{[", '{"a":', '"a":[', '{"a":{"a":', '{"a":"{",', '{"a":1,'),
    *('{"a":1},', '"a":1,', "[[1],", '["a",', '["a","b","c"],', "[9", "9", "-", "1e9,", "tru"),
    *('"', "\\", '\\"', '{"\\"', '" ', "`", "```", "```json\n", "<think>", "</think>", "<", "<|"),
    *(" ", "\n", "\t", "\r\n", "\u2028", '{"a" ', "{ ", "[ ", '"error_type"', '"error_type":'),
    *("\\u0041", "\\\\u005c", "&amp;", "&#38", "&", "\u0301\u0323", "\ufdfa", "\ud800", "*", "_"),
    *("Step 1:", "Step 1: a (Logical)\n", "(Logical)", "(Logical) ", "####ANSWER:", "(", "“", "‘"),
    *(
        "Step 2. ",
        "\n3. a",
        ". ",
        "</s>",
        "</s> ",
        "<a",
        "Here ",
        "here is\n",
        "\\boxed{",
        "<｜a｜>",
        "<b>",
        "$",
        "\\text{a}",
        "### ",
        "(Final ",
        "- Final Answer",
        "<|a|>assistant\n",
        "Step 1: a <think> ",
        "\nStep 1: the </think> b (Logical)",
        " 'a",
        "___ ",
        " ...",
        ", because",
        "\\#",
        "~~",
        "[Logical] ",
        "**",
    ),
    *('"steps":[', f'"{STEP}",', f'{{"steps":["{STEP}"]}},', VERDICT, f"{VERDICT[:-1]},", PATH),
)
TEXTS: dict[str, Callable[[int], str]] = {unit: repeated(unit) for unit in UNITS} | {
    "many keys": lambda length: numbered(length // 12),
    "many keys, cut off": lambda length: numbered(length // 12)[:-1],
    "doubled keys": lambda length: "{" + '"error_type":"Correct",' * (length // 23) + '"a":1}',
    "a doubled key of much": lambda length: f'{{"a":"{"x" * length}","a":"{"x" * length}y"}}',
    "nested lists": nested("[", "]"),
    "nested objects": nested('{"a":', "}"),
    "nested both": nested('[{"a":', "}]"),
    "nested as deep as is read": lambda length: (
        '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH
    ) * (length // (6 * MAX_DEPTH)),
    "values, then prose": lambda length: f'{"[1]" * (length // 6)}{"x" * (length // 2)}',
    "one list of verdicts": lambda length: f"[{f'{VERDICT},' * (length // len(VERDICT))}1]",
    "a verdict of much": lambda length: VERDICT.replace("It", "{\\\"a\\\": " * (length // 8)),
    "a long key": lambda length: f'{{"{"*" * length}": 1}}',
}  # fmt: skip
PREFIXES = ("", '{"', '{"a":"', '{"error_type":"Correct","a":[')
LENGTH, QUICK = 8_000, 0.02
"""Characters that are read in seconds into which the square of them hardly fits."""


def cost(read: Reader, text: str, tries: int = 3) -> float:
    best = float("inf")
    for _ in range(tries):
        began = time.process_time()
        with suppress(ValueError, StepRefused):
            read(text)
        best = min(best, time.process_time() - began)
    return best


def check_growth(name: str, make: Callable[[int], str], largest: int, prefix: str = "") -> None:
    read, _ = READERS[name]

    def work(size: int) -> None:
        with suppress(ValueError, StepRefused):
            read(prefix + make(size))

    power = exponent(work, largest, floor=QUICK)
    assert power <= POWER or exponent(work, 2 * largest, floor=QUICK) <= POWER, name


@pytest.mark.parametrize("unit", TEXTS)
def test_the_time_grows_as_the_reply_does(unit: str) -> None:
    make = TEXTS[unit]
    bare = max(QUICK, 1.5 * cost(read_reply, make(LENGTH)))  # most read JSON first, and add little
    for name, (read, _) in READERS.items():
        for prefix in PREFIXES if name in ("answers", "step between head and tag") else ("",):
            if cost(read, prefix + make(LENGTH), 1) > (QUICK if name == "reply" else bare):
                check_growth(name, make, 2 * LENGTH, prefix)


@pytest.mark.parametrize("unit", [unit for unit in TEXTS if unit not in UNITS])
def test_the_time_grows_as_a_long_reply_does(unit: str) -> None:
    for name in ("answers", "feedback with its data"):
        check_growth(name, TEXTS[unit], 120_000)


@pytest.mark.parametrize("unit", ["[", '{"a":'])
def test_nesting_costs_no_memory(unit: str) -> None:
    read, errors = READERS["feedback with its data"]
    text = (unit * 100_000)[:MAX_CHARACTERS]
    tracemalloc.start()
    with suppress(*errors):
        read(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 2**20


def test_a_reply_without_end_is_not_looked_into() -> None:
    for unit in ('{"', f"{VERDICT} ", f"{PATH} ", f"{INJECTED} ", "[[1],"):
        text = unit * (4 * MAX_CHARACTERS // len(unit))
        assert read_reply(text).is_too_long
        for name in ("answers", "judge", "feedback", "triples", "groups", "path", "trajectory", "injection"):
            read, (error, *_) = READERS[name]
            with pytest.raises(error, match="longer than 262,144 characters"):
                read(text)
    fits = VERDICT + " " * (MAX_CHARACTERS - len(VERDICT))
    assert parse_feedback(fits).error_type == "Correct"


FRAGMENTS = (
    *'{}[]",:\\\n ',
    '"a"',
    '"error_type": ',
    '"diagnosis": ',
    '"guidance": "g"',
    '"verdict": ',
    '"explanation": ',
    '"path": ',
    '"steps": ',
    '"step": ',
    '"triples": ',
    '"groups": ',
    '"query": ',
    '"Correct"',
    '"none"',
    '"false"',
    "false",
    "true",
    "null",
    "NaN",
    "-Infinity",
    "1e999",
    "-1e-999",
    "9" * 401,
    f"1{'0' * 4_400}",
    "-0",
    "1_000",
    "\u0663",
    "0x1F",
    '"\\ud800"',
    '"\\udc00\\ud800"',
    "\ud800",
    "\udfff",
    "\x00",
    "\x1b[31m",
    "\x7f",
    "\u202e",
    "\ufeff",
    "\u2028",
    "```json\n",
    "```",
    "<think>",
    "</think>",
    '{"a": {"a": [',
    "[[[[",
    "]]}}",
    VERDICT,
    JUDGED,
    PATH,
    INJECTED,
    STEP,
    json.dumps(VERDICT),
    VERDICT[:-1],
    f'["{STEP}"]',
    '["Oru", "on", "Vel"]',
    '{"head": [], "tail": 1}',
    '"error_type": "Correct", "Error Type": "correct"',
    "Step 1:",
    "(Logical)",
    "####ANSWER:",
    "\\u",
    '["T1", "#2", "\u0661", true, 3.5]',
    '{"steps": [{"step": null}, {"text": "Step 1: a"}]}',
    "&#x110000;",
)


def check(text: str, data: str) -> None:
    """No reader raises anything but its own errors, each with a reason in one short line."""
    own: dict[str, Callable[[], Any]] = {
        "feedback": lambda: parse_feedback(text, True, data),
        "judge": lambda: read_verdict(text, [data]),
        "path": lambda: read_path(text, data),
        "trajectory": lambda: read_trajectory(text, data),
        "injection": lambda: read_step_reply(text, data),
    }
    for name, (read, errors) in READERS.items():
        with catching(errors) as caught:
            found = own[name]() if name in own else read(text)
            if name in ("feedback", "judge", "path", "triples", "groups"):
                repr(found).encode()  # it can be written down
        reason = caught[0] if caught else "none"
        assert 0 < len(reason) < 400, name
        assert "\n" not in reason, name


@contextmanager
def catching(errors: tuple[type[Exception], ...]) -> Iterator[list[str]]:
    caught: list[str] = []
    try:
        yield caught
    except errors as error:
        caught.append(str(error))


def test_four_thousand_hostile_replies_break_no_reader() -> None:
    chance = Random("hostile replies")
    for number in range(sizes.size(4_000, 400)):
        pieces = chance.choices(FRAGMENTS, k=chance.randrange(1, 9))
        text = "".join(pieces)
        if number % 2_000 == 0:
            text = (text * 60_000)[:60_000]
        check(text, "".join(chance.choices((text, *FRAGMENTS), k=2)))


@settings(deadline=None, max_examples=sizes.examples(200))
@given(st.text() | st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join), st.text())
def test_any_reply_breaks_no_reader(text: str, data: str) -> None:
    check(text, data)
