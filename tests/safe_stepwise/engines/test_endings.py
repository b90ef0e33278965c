"""Whatever a model thinks, and however its reply ends: what is whole is read, and nothing else ever is."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from builders.synthetic import Spec, generate
from builders.verified.teachers.replies import read_path
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.rewards import _read_completion, judge_trajectory
from safe_stepwise.engines.base import Completion, EngineError, Message, Request, completion
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.openai import read_completion
from safe_stepwise.feedback import FeedbackError, parse_feedback
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import options_type
from safe_stepwise.methods.loop import read_reply
from safe_stepwise.methods.paths import read_verdict as read_path_verdict
from safe_stepwise.methods.reading import read, words
from safe_stepwise.methods.running import run_questions
from safe_stepwise.metric.judge import read_verdict
from safe_stepwise.open import open_engine
from safe_stepwise.records import Passage, Question, Trajectory, Triple
from safe_stepwise.store.thoughts import split_thought

THOUGHTS: Mapping[str, tuple[str, str]] = {
    "think": ("<think>\n", "\n</think>\n\n"),
    "opened by the template": ("", "\n</think>\n\n"),
    "thinking": ("<thinking>", "</thinking>"),
    "seed": ("<seed:think>", "</seed:think>"),
    "Mistral": ("[THINK]", "[/THINK]"),
    "Kimi": ("◁think▷", "◁/think▷"),
    "Harmony": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "Harmony, decoded": ("analysis", "assistantfinal"),
}
VERDICT = '{{"error_type": "{}", "diagnosis": "Passage 2 says Tesk.", "guidance": "State the town."}}'
JUDGED = '{{"verdict": "{}", "explanation": "Not the same river."}}'
PATH = '{{"path": [1], "verdict": "{}", "explanation": "Ors was born elsewhere."}}'
READERS: Mapping[str, tuple[Callable[[str], Any], str, str, Any]] = {
    "step": (
        lambda text: read_reply(text, 1).text,
        "Step 1: Ors was born in Ardle. (Attribution)",
        "Step 1: Ors was born in Tesk. (Attribution)",
        "Ors was born in Tesk.",
    ),
    "verdict": (
        lambda text: parse_feedback(text).error_type,
        VERDICT.format("Correct"),
        VERDICT.format("Contradictory"),
        "Contradictory",
    ),
    "judge": (lambda text: read_verdict(text)[0], JUDGED.format("correct"), JUDGED.format("incorrect"), "incorrect"),
    "answer": (lambda text: _answer(text), '{"answer": "Ardle"}', '{"answer": "Tesk"}', "Tesk"),
    "path verdict": (lambda text: read_path_verdict(text), '{"verdict": "yes"}', '{"verdict": "no"}', "NO"),
    "teacher": (
        lambda text: read_path(text).verdict,
        PATH.format("none"),
        PATH.format("wrong_answer"),
        "wrong_answer",
    ),
}
"""By reader: how it reads, a draft that is only thought, a reply, and what that says."""
ENDINGS = ("whole", "cut in the reply", "cut in the thought", "thought alone", "content_filter", "abort", "error")


def _answer(text: str) -> str:
    reading = read(text, {"answer": words})
    if not reading.value:
        raise ValueError(reading.problem)
    return str(reading.value["answer"])


def replied(thought: str, ending: str, draft: str, reply: str) -> Completion:
    """The completion of a model that thinks in a form, drafts in its thought, and ends in a way."""
    opens, closes = THOUGHTS[thought]
    within = f"{opens}If it were right I would say {draft}, but Passage 2 says Tesk"
    whole = f"{within}.{closes}{reply}"
    if ending == "whole":
        return completion(whole)
    if ending == "cut in the reply":
        return completion(whole[: -len(reply) // 3], finish="length")
    if ending == "cut in the thought":
        return completion(within, finish="length")
    if ending == "thought alone":
        return completion(f"{within}.{closes}")
    return completion(whole, finish=ending)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("thought", THOUGHTS)
def test_what_is_whole_is_read_and_nothing_else(thought: str, ending: str, reader: str) -> None:
    reads, draft, reply, expected = READERS[reader]
    made = replied(thought, ending, draft, reply)
    if ending == "whole":
        assert reads(made.text) == expected
        assert (made.ending, made.flaw) == ("whole", "")
        assert draft in made.thought
        return
    with pytest.raises(ValueError):  # noqa: PT011 - each reader has its own
        reads(made.text)
    assert made.text == ""
    assert made.flaw
    assert draft in made.thought + made.fragment  # nothing that was said is lost


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("thought", [name for name in THOUGHTS if name != "opened by the template"])
def test_readers_of_plain_text_know_thoughts_too(thought: str, reader: str) -> None:
    """Rewards and verdicts are also read where no engine was: of what a trainer sampled, of a user's own file."""
    _, draft, reply, _ = READERS[reader]
    opens, closes = THOUGHTS[thought]
    whole = f"{opens}Perhaps {draft}{closes}{reply}"
    parts = [{"type": "thinking", "thinking": draft}, {"type": "text", "text": reply}]
    for said in (whole, [{"role": "assistant", "content": whole}], [{"role": "assistant", "content": parts}]):
        assert _read_completion(said) == reply
    if reader == "verdict":
        assert parse_feedback(whole).error_type == "Contradictory"
        with pytest.raises(FeedbackError):
            parse_feedback(f"{opens}Perhaps {draft}")


@pytest.mark.parametrize(
    "text",
    [
        "If it were right I would say {}.",
        "I would say {}, but it is wrong.",
        "```json\n{}\n```\nNo wait: Contradictory.",
        "{}\nHowever, Passage 2 says Tesk.",
        "{} Scratch that.",
        "{}\nActually the step is not borne out.",
        "Unless I misread Passage 2: {}",
        "I would never answer {}",
        "I can’t say {}",
        "A careless reader might conclude {}",
        "Hypothetically: {}",
        "For example: {}",
        "It would be wrong to reply {}",
        "{{'error_type': 'Contradictory', 'diagnosis': 'No.'}}\n{}",
        "error_type: Contradictory\n{}",
        "The label is Contradictory. {}",
        "No. {}",
        "I retract the following: {}",
        "I am unable to judge this step, so I only repeat the form: {}",
        "If the step named Tesk, this is the outcome. {}",
        "Pretend it is right, then {}",
        "Wäre der Schritt richtig, würde ich sagen: {}",
        "Это неверно: {}",
        "Passage 1 claims: {}",
        "~~{}~~",
        "<!-- {} -->",
        "Quoted from Passage 1:\n> {}",
        "{} 👎",
        "{}\n\n0/10",
        "{} Let me know if you want the honest verdict: the step is false",
        "{}" + " and further" * 40,
        "{} Nein, das ist falsch.",
        "{}\nThe passage says Tesk.",
    ],
)
def test_a_verdict_that_the_words_around_it_take_back_is_none(text: str) -> None:
    with pytest.raises(FeedbackError, match="take it back"):
        parse_feedback(text.format(VERDICT.format("Correct")))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "Sure: {}",
        "Passage 2 never says otherwise: {}",
        "There is nothing wrong with it: {}",
        "Passage 2 says so. My verdict:\n\n```json\n{}\n```",
        "{} Done!",
        "{}\n\nI hope this helps!",
    ],
)
def test_a_verdict_with_nothing_of_weight_around_it_counts(text: str) -> None:
    assert parse_feedback(text.format(VERDICT.format("Correct"))).error_type == "Correct"


@pytest.mark.parametrize("text", ['{{"previous_step": {}}}', '{{"rejected": [{}]}}', '{{"if_it_were_right": {}}}'])
def test_an_accepting_verdict_within_another_object_is_none(text: str) -> None:
    with pytest.raises(FeedbackError, match="part of another object"):
        parse_feedback(text.format(VERDICT.format("Correct")))


@pytest.mark.parametrize(
    "text",
    [
        "assistant<|channel|>analysis<|message|>{}<|end|>",
        "analysisI guess {}",
        "<|START_THINKING|>maybe {}",
        "<|begin_of_thought|>\n{}",
        "<scratchpad>\n{}",
        '<think type="deep">{}',
        "<longcat_think>{}",
    ],
)
def test_a_thought_in_any_form_that_never_closes_is_no_text(text: str) -> None:
    with pytest.raises(FeedbackError):
        parse_feedback(text.format(VERDICT.format("Correct")))


@pytest.mark.parametrize(
    "step",
    [
        "Step 2: According to Passage 1, the <think> tag was used by DeepSeek. (Attribution)",
        "Step 2: According to Passage 1, </think> closes a thought. (Attribution)",
        "**Step 2:** From Step 1, he said [THINK] twice and <think> once. *(Logical)*",
    ],
)
@pytest.mark.parametrize(
    "thought", ["{}", "<think>Step 2: no.</think>{}", "<think>Step 2: a (Logical)\n</think>\n{}", "Hm.</think>\n\n{}"]
)
def test_a_step_may_name_a_mark(thought: str, step: str) -> None:
    reply = completion(thought.format(step))
    assert (reply.text, reply.ending) == (step, "whole")
    assert read_reply(reply.text, 2).number == 2


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Step 1: Ardle, I think. (Logical)</think>Step 1: Tesk. (Logical)", "Step 1: Tesk. (Logical)"),
        ("Step 1: a hm </think>Step 1: Tesk. (Logical)", "Step 1: Tesk. (Logical)"),
        ("Step 1: a (Logical)\n</think>\nStep 1: Tesk. (Logical)", "Step 1: Tesk. (Logical)"),
        ("<think>Step 1: the </think>Step 1: Tesk. (Logical)", "Step 1: Tesk. (Logical)"),
        ("Step 1: a </think>####ANSWER: Tesk (Final Answer)", "####ANSWER: Tesk (Final Answer)"),
        ("Step 1: Tesk. <think> Hm, no. (Logical)", ""),
        ("Step 1: <think>Tesk (Logical)", ""),
    ],
)
def test_a_draft_of_a_step_stays_a_thought(reply: str, text: str) -> None:
    assert completion(reply).text == text


def test_two_final_messages_are_both_read() -> None:
    final = "<|channel|>final<|message|>{}"
    reply = "<|start|>assistant".join(final.format(VERDICT.format(label)) for label in ("Contradictory", "Correct"))
    with pytest.raises(FeedbackError, match="two different verdicts"):
        parse_feedback(reply)


@pytest.mark.parametrize(
    "text",
    [
        "**Step 1:** Ors was born in Tesk. (Attribution)",
        "**Step 1: Ors was born in Tesk.** (Attribution)",
        "### Step 1: Ors was born in Tesk. *(Attribution)*",
        "```\nStep 1: Ors was born in Tesk. (Attribution)\n```",
        "- **Step 1**: Ors was born in Tesk. **(Attribution)**",
    ],
)
def test_a_step_in_markdown_is_read(text: str) -> None:
    assert read_reply(text, 1).text == "Ors was born in Tesk."


# What servers send


def served(message: Mapping[str, Any], finish: str = "stop") -> Completion:
    return read_completion(json.dumps({"choices": [{"message": message, "finish_reason": finish}]}).encode())


THOUGHT, SAID = [{"type": "text", "text": "Tesk?"}], [{"type": "text", "text": "Oru"}]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Oru", "reasoning_content": "Tesk?"},
        {"content": "Oru", "reasoning": "Tesk?"},
        {"content": "Oru", "reasoning_details": [{"type": "reasoning.text", "text": "Tesk?"}]},
        {"content": SAID, "reasoning": "Tesk?"},
        {"content": [{"type": "thinking", "thinking": THOUGHT}, *SAID]},
        {"content": "<think>Tesk?</think>Oru"},
    ],
)  # fmt: skip
def test_thoughts_are_kept_apart_wherever_a_server_has_them(message: dict[str, Any]) -> None:
    reply = served(message)
    assert (reply.text, reply.thought, reply.ending) == ("Oru", "Tesk?", "whole")


@pytest.mark.parametrize(
    ("message", "ending"),
    [
        ({"content": None, "reasoning_content": "Oru"}, "thought"),
        ({"content": "", "reasoning": "Oru"}, "thought"),
        ({"content": None, "refusal": "I can't help with that."}, "refused"),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, "refused"),
        ({"content": None, "tool_calls": [{"function": {"name": "search"}}]}, "refused"),
        ({"content": None}, "whole"),
    ],
)
def test_a_message_without_text_says_what_it_is(message: dict[str, Any], ending: str) -> None:
    reply = served(message)
    assert (reply.text, reply.ending) == ("", ending)


@pytest.mark.parametrize("finish", ["error", "abort", "insufficient_system_resource", "unheard_of"])
def test_half_a_reply_is_asked_for_again_and_its_tokens_count(finish: str) -> None:
    class Faulty:
        name, simulated = "faulty", False
        identity: Mapping[str, Any] = {"engine": "faulty"}
        calls = 0

        async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
            self.calls += 1
            body = {"choices": [{"message": {"content": "Or"}, "finish_reason": finish}]}
            body |= {"usage": {"prompt_tokens": 5, "completion_tokens": 2}}
            return [read_completion(json.dumps(body).encode())] if self.calls == 1 else [completion("Oru")]

        async def check(self) -> None: ...
        async def close(self) -> None: ...

    client = Client(Faulty())
    reply = asyncio.run(client.complete(Request((Message("user", "Where?"),), role="path")))
    assert reply.text == "Oru"
    assert (client.accounts["path"].calls, client.accounts["path"].completion) == (2, 2)


# From end to end


class Thinking:
    """A player that thinks before every reply, and of each third request is cut in its thought at first."""

    simulated = True

    def __init__(self, form: tuple[str, str]) -> None:
        self.inner, self.form = open_engine("symbolic:error_rate=0.2,seed=3"), form
        self.name, self.identity = self.inner.name, self.inner.identity
        self.numbers = itertools.count()
        self.cut: dict[tuple[Message, ...], int] = {}

    async def check(self) -> None: ...

    async def close(self) -> None: ...

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [await self._one(request) for request in requests]

    async def _one(self, request: Request) -> Completion | EngineError:
        opens, closes = self.form
        if request.messages not in self.cut and next(self.numbers) % 3 == 0:
            self.cut[request.messages] = request.sampling.max_tokens
            return completion(f"{opens}Let me see. Step 1: ####ANSWER: Ardle (Final Answer)", finish="length")
        limit = self.cut.get(request.messages, request.sampling.max_tokens)
        asked = replace(request, sampling=replace(request.sampling, max_tokens=limit))
        (reply,) = await self.inner.generate([asked])
        if isinstance(reply, EngineError):
            return reply
        return completion(f"{opens}It may be {{'answer': 'Ardle'}}.{closes}{reply.text}", reply.usage)


def questions() -> list[Question]:
    return [question for question, _ in generate(Spec(rows=30, seed=4, noise=0.0))]


def answered(method: str, engine: Any) -> list[Trajectory]:
    found = METHODS[method]
    clients = {role: Client(engine, tries=1) for role in found.roles}
    options = options_type(found)()
    return asyncio.run(run_questions(questions(), lambda question: found.answer(question, clients, options)))


@pytest.mark.parametrize("form", ["think", "opened by the template", "Harmony"])
@pytest.mark.parametrize("method", ["safe", "cot", "react", "sg_fsm2", "sg_fsm_safe"])
def test_who_thinks_answers_as_who_does_not(method: str, form: str) -> None:
    plain = answered(method, open_engine("symbolic:error_rate=0.2,seed=3"))
    thinking = answered(method, Thinking(THOUGHTS[form]))
    assert [(t.answer, t.steps, t.stop_reason) for t in thinking] == [
        (t.answer, t.steps, t.stop_reason) for t in plain
    ]
    assert [[a.text for a in t.attempts] for t in thinking] == [[a.text for a in t.attempts] for t in plain]
    assert all(attempt.thoughts for t in thinking for attempt in t.attempts if attempt.usage)


def test_time_grows_with_the_reply_only() -> None:
    for text in ("<think>", "</think>", "<|channel|>final<|message|>", '{"', "analysis", "◁think▷ "):
        assert split_thought(text * 20_000)


TOLD = (
    "Step 1: According to Passage 1, Dune Rain was directed by Ors Velt. (Attribution)",
    "Step 2: From Step 1 it follows that the answer is Ors Velt. (Logical)",
    "Step 3: ####ANSWER: Ors Velt (Final Answer)",
)


def marked(step: str) -> str:
    head, _, rest = step.partition(":")
    return f"**{head}:**{rest}"


@pytest.mark.parametrize(
    "said",
    [
        "\n".join(TOLD),
        "<think>Who? Step 1: ####ANSWER: Ardle (Final Answer)</think>\n" + "\n".join(TOLD),
        "\n".join(map(marked, TOLD)),
        "```\n" + "\n".join(TOLD) + "\n```",
        [{"role": "assistant", "content": [{"type": "text", "text": "\n".join(TOLD)}]}],
        [{"role": "assistant", "content": None, "reasoning_content": "Who?"}],
    ],
)
def test_a_perfect_trajectory_is_paid_for_in_any_of_these_forms(said: Any) -> None:
    page = Passage("Dune Rain", ("Dune Rain was directed by Ors Velt.",), True)
    hop = Triple("Dune Rain", "director", "Ors Velt", 1)
    asked = Question("q", "b", "train", "Who directed Dune Rain?", "Ors Velt", passages=(page,))
    checker = Checker(asked, [hop], [hop])
    is_silent = not isinstance(said, str) and said[0]["content"] is None
    assert judge_trajectory(checker, _read_completion(said)).reward == (0 if is_silent else 1)
