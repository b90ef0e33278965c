"""Serve replies that no model made, in the OpenAI protocol; all are marked simulated.

A symbolic player, or a script, replies in a model's place. Its models are called ``simulated``, by which engines
recognise them, and each reply has ``"simulated": true``, a fingerprint and a header.

HTTP brings messages alone, and a player needs a row's annotations. Our prompts quote all data as JSON strings, one a
line, so that question, passages, steps and remarks can be read from them (no line of data begins as a line of ours
does); the annotations come from the rows that the server was started with. SG-FSM's Searcher sees only the question's
passages, its Decomposer what an earlier reply made of the question, its Revisor neither: revisions are refused.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from aiohttp import web

from safe_stepwise import prompts
from safe_stepwise.commands import reading, serving, transcript
from safe_stepwise.commands.command import command
from safe_stepwise.commands.values import Port
from safe_stepwise.engines import client, openai
from safe_stepwise.engines.base import GREEDY, NO_USAGE, Engine, EngineError, Message, Request, Sampling, Schema
from safe_stepwise.engines.mock import prompt_tokens, split_tokens
from safe_stepwise.errors import UserError
from safe_stepwise.methods import sg_fsm
from safe_stepwise.methods.generator import FINAL_ROLE
from safe_stepwise.methods.generator import ROLE as GENERATE
from safe_stepwise.methods.scene import JUDGE, AnswerScene, PromptingScene, Scene, SubAnswer
from safe_stepwise.methods.verifier import ROLE as VERIFY
from safe_stepwise.open import open_engine
from safe_stepwise.records import Feedback, Passage, Question, Usage, identity
from safe_stepwise.steps import StepError, parse_step
from safe_stepwise.store.terminal import credentials, printable

_DECODER = json.JSONDecoder()
_PASSAGE = re.compile(r"Passage (\d+)(?: \(|: )(?=\")")
_SENTENCE = re.compile(r"^\d+: (?=\")")
_FINDING = re.compile(r'("(?:[^"\\]|\\.)*") ("(?:[^"\\]|\\.)*")(?: \(Passage (\d+)\))?')
_LEFT_OUT = "Left out: Passage"
_LAST_CALL = "There is no room for another", "No step is left."
_ROLES = ("system", "user", "assistant")
_DECIDING = ("terminate", sg_fsm.INFORMED, *sg_fsm.DECISIONS)  # roles that see the original question
_MACHINE = (*_DECIDING, "decompose", "search", "summarize", "revise")


class QuestionIndex:
    """The annotated questions of a stand-in, by their text."""

    def __init__(self, questions: Iterable[Question]) -> None:
        self._by_words = {prompts.defuse(question.question): question for question in questions}
        self._texts = {words: {prompts.defuse(p.text) for p in q.passages} for words, q in self._by_words.items()}
        self._rewritten: dict[str, PromptingScene] = {}

    def __len__(self) -> int:
        return len(self._by_words)

    def scene(self, role: str, user: str) -> Scene | AnswerScene | PromptingScene:
        """Read the scene from a user's message to a role; raises `HttpRefusal` for other prompts or questions."""
        try:
            lines = user.split("\n")
            return self._machine_scene(role, lines) if role in _MACHINE else self._scene(role, lines)
        except (ValueError, StepError, LookupError) as error:
            raise serving.HttpRefusal(400, f"the prompt can't be read as one of ours ({error})") from None

    def note_reply(self, request: Request, reply: str) -> None:
        """Remember how a reply rewrites a question, as SG-FSM's next prompts show only that."""
        if isinstance(request.scene, PromptingScene) and request.role in _DECIDING:
            with suppress(ValueError):  # of a reply that is made unreadable
                rewritten = json.loads(reply).get("question", request.scene.current)
                self._rewritten[prompts.defuse(rewritten)] = request.scene

    def _scene(self, role: str, lines: Sequence[str]) -> Scene | AnswerScene:
        if role == JUDGE:
            prediction = _value_after(lines, "Contestant's answer: ")
            return AnswerScene(prediction, tuple([json.loads(line[2:]) for line in lines if line.startswith('- "')]))
        words = _value_after(lines, "Question: ")
        question = self._question(words, _read_passages(lines, self._by_words.get(words)))
        steps = tuple(parse_step(json.loads(line)) for line in lines if line.startswith('"'))
        if role == VERIFY and not steps:
            raise ValueError("it has no step to judge")
        if role == VERIFY:
            return Scene(question, previous=steps[:-1], step=steps[-1])
        return Scene(question, previous=steps, feedback=_last_rejection(lines))

    def _machine_scene(self, role: str, lines: Sequence[str]) -> PromptingScene:
        """Read the scene of a role of SG-FSM; raises ``ValueError`` for a revision, which shows no question."""
        faults = tuple(Feedback(json.loads(line[7:]), "", "") for line in lines if line.startswith('Fault: "'))
        findings = [match.groups() for match in map(_FINDING.fullmatch, lines) if match]
        sub_answers = tuple(SubAnswer(json.loads(q), int(n or 0), json.loads(a)) for q, a, n in findings)
        fields: dict[str, Any] = {"evidence": '"evidence' in lines[-1], "sub_answers": sub_answers}
        if role == "revise":
            raise ValueError("a revision shows no question, so start the stand-in without the mistake format")
        if role in _DECIDING:
            question = self._question(_value_after(lines, "Original question: "))
            current = _value_after(lines, "The question as it stands: ")
            return PromptingScene(question, current=current, faults=faults, **fields)
        words = _value_after(lines, "Question: ")
        if role == "search":
            pages = _read_passages(lines, None)
            texts = {page.text for page in pages}
            original = max(self._texts, key=lambda name: len(texts & self._texts[name]))
            question = self._question(original if texts & self._texts[original] else words, pages)
            current = words if words in self._by_words or words in self._rewritten else ""
            return PromptingScene(question, current=current, subquestion=words, faults=faults, **fields)
        if role == "summarize":  # which shows the cited passages alone
            question = self._question(words, _read_passages([*lines, _LEFT_OUT], self._question(words)))
            return PromptingScene(question, answer=_value_after(lines, "Answer that came out: "), **fields)
        return replace(
            self._rewritten.get(words) or PromptingScene(self._question(words)), current=words, faults=faults
        )

    def _question(self, words: str, pages: Sequence[Passage] | None = None) -> Question:
        """Return the question of this text, with the passages of the prompt, if it shows any, in their order."""
        if (question := self._by_words.get(words)) is None:
            raise serving.HttpRefusal(
                400,
                f"the stand-in has no model: it knows the annotations of {len(self):,} questions, "
                "and this is none of them; see --examples and --questions",
            )
        originals = {prompts.defuse(page.text): page for page in question.passages}
        pages = tuple(originals.get(page.text, page) for page in (question.passages if pages is None else pages))
        numbers = {prompts.defuse(page.text): n for n, page in enumerate(pages, 1)}
        texts = [prompts.defuse(page.text) for page in question.passages]
        hops = tuple(
            hop if hop.passage is None else replace(hop, passage=numbers.get(texts[hop.passage - 1]))
            for hop in question.decomposition
        )
        return replace(question, passages=pages, decomposition=hops)


def request_of(body: Mapping[str, Any], messages: Sequence[Any]) -> Request:
    """Make the request of a body of the protocol; its role is read from its prompt."""
    turns = tuple(_message(message) for message in messages)
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or GREEDY.max_tokens
    if type(limit) is not int or limit < 1:
        raise serving.HttpRefusal(400, "max_completion_tokens has to be a whole number from 1 on")
    form = body.get("response_format")
    json_schema = form.get("json_schema") if isinstance(form, Mapping) else None
    schema = None
    if isinstance(json_schema, Mapping) and isinstance(json_schema.get("schema"), Mapping):
        schema = Schema.from_dict(str(json_schema.get("name")), json_schema["schema"])
    return Request(turns, Sampling(max_tokens=limit), schema, role_of(turns))


def role_of(turns: Sequence[Message]) -> str:
    """Return the role whose prompt these messages are; empty if no prompt of ours begins so."""
    system = turns[0].content if turns[0].role == "system" else ""
    role = next((r for text, r in _instructions() if system.startswith(text)), "")
    is_last_call = role == GENERATE and any(line.startswith(_LAST_CALL) for line in turns[-1].content.split("\n"))
    return FINAL_ROLE if is_last_call else role


@cache
def _instructions() -> tuple[tuple[str, str], ...]:
    """Pair the instructions (system messages) of our prompts with their roles, the longest first."""
    roles = {prompt.system: prompt.role for prompt in prompts.load_all() if prompt.system}
    return tuple(sorted(roles.items(), key=lambda entry: -len(entry[0])))


def _message(message: Any) -> Message:
    role = message.get("role") if isinstance(message, Mapping) else None
    if role not in _ROLES:
        raise serving.HttpRefusal(400, f"a message's role is {', '.join(_ROLES)}, not {role!r}")
    return Message(role, serving.message_text(message))


def _value_after(lines: Sequence[str], head: str) -> str:
    if (match := next((line for line in lines if line.startswith(f'{head}"')), None)) is None:
        raise ValueError(f"it has no line {head!r}")
    return str(json.loads(match[len(head) :]))


def _read_passages(lines: Sequence[str], question: Question | None) -> list[Passage]:
    """Read the passages of a prompt; those that it leaves out are taken from the question, in its order."""
    passages = dict[int, Passage]()
    for place, line in enumerate(lines, 1):
        if (head := _PASSAGE.match(line)) is None:
            continue
        title, text = "", line[head.end() :]
        if head[0].endswith("("):
            title, end = _DECODER.raw_decode(line, head.end())
            text = line[end:].removeprefix("): ")
        numbered = takewhile(_SENTENCE.match, lines[place:]) if text == "):" else ()
        sentences = [_SENTENCE.sub("", sentence, 1) for sentence in numbered] or [text]
        passages[int(head[1])] = Passage(title, tuple(map(json.loads, sentences)))
    if question is not None and any(line.startswith(_LEFT_OUT) for line in lines):
        quoted = {page.text for page in passages.values()}
        left_out = (page for page in question.passages if prompts.defuse(page.text) not in quoted)
        numbers = [n for n in range(1, len(question.passages) + 1) if n not in passages]
        passages |= dict(zip(numbers, left_out, strict=False))
    return [page for _, page in sorted(passages.items())]


def _last_rejection(lines: Sequence[str]) -> Feedback | None:
    numbers = [number for number, line in enumerate(lines) if line.startswith('Rejected: "')]
    if not numbers:
        return None
    remarks = dict.fromkeys(("Fault", "Why", "Now"), "")
    for line in lines[numbers[-1] + 1 :]:
        name, _, value = line.partition(": ")
        if name in remarks:
            remarks[name] = str(json.loads(value))
    return Feedback(remarks["Fault"], remarks["Why"], remarks["Now"])


MARKS = {"simulated": True, "system_fingerprint": openai.STAND_IN}
HEADERS = {"X-Simulated": "true"}
OWNER = "safe-stepwise stand-in, simulated"
_PLAIN = "symbolic"


class StandIn:
    """The simulated engine, and the name of the model that it serves.

    Other settings, or another script, change the name, as clients cache replies by it. The annotations of the
    questions are no part of the name: who mends them has to use a new cache.
    """

    def __init__(self, spec: str, questions: Iterable[Question]) -> None:
        """Open the engine; raises ``UserError`` for a spec of an engine that is not simulated."""
        self._engine: Engine = open_engine(spec)
        if not self._engine.simulated or spec.startswith("openai:"):
            raise UserError(f"{spec}: a stand-in has no model: write symbolic, or mock:FILE")
        self._questions = QuestionIndex(questions)
        self._is_script = spec.partition(":")[0] == "mock"
        digest = identity(dict(self._engine.identity))[:8]
        self.model = openai.STAND_IN if spec == _PLAIN else f"{openai.STAND_IN}-{digest}"

    def application(self, most_bytes: int, host: str = "127.0.0.1") -> web.Application:
        routes = [*serving.model_routes(self.model, MARKS, OWNER), web.post("/v1/chat/completions", self._complete)]
        return serving.application(routes, most_bytes, host)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await serving.read_body(request)
        message, usage, finish = await self._reply(body)
        reply = serving.ChatReply(self.model, MARKS)
        if not body.get("stream"):
            response = serving.answer_json(reply.completion([message], usage, finish))
            response.headers.update(HEADERS)
            return response
        stream = await serving.begin_stream(request, HEADERS)
        await stream.write(reply.chunk({"role": "assistant", **message}))
        await stream.write(reply.chunk({}, finish) + reply.usage_chunk(usage) + serving.STREAM_END)
        return stream

    async def _reply(self, body: dict[str, Any]) -> tuple[dict[str, str], Usage, str]:
        serving.choice_count(body, 1)
        prompt = request_of(body, serving.validated_messages(body, self.model))
        if not self._is_script:
            prompt = replace(prompt, scene=self._questions.scene(prompt.role, prompt.messages[-1].content))
        try:
            reply = await client.complete_once(self._engine, prompt, tuple(credentials().values()))
        except EngineError as error:
            wait = None if error.retry_after is None else max(1, round(error.retry_after))
            raise serving.HttpRefusal(503 if error.transient else 400, str(error), wait) from None
        self._questions.note_reply(prompt, reply.text)
        usage, message = reply.usage, {"content": reply.transcript}
        if usage == NO_USAGE:
            thought = len(split_tokens(reply.thought))
            usage = Usage(len(prompt_tokens(prompt)), 0, thought + len(split_tokens(reply.transcript)), thought)
        if reply.thought:
            message["reasoning_content"] = reply.thought
        return message, usage, "stop" if reply.ending == "whole" else "length"


@dataclass(frozen=True, kw_only=True)
class Options:
    spec: str = "symbolic"
    port: Port = 8001
    host: str = "127.0.0.1"
    questions: Path | None = None
    benchmark: str | None = None
    show: bool = False


def stand_in_for_a_model(options: Options) -> None:
    """Serve until Ctrl-C, or print the rows of the questions (``--examples``)."""
    file = options.questions
    rows = reading.read_rows(file) if file else ((f"example {row['id']}", row) for row in reading.examples())
    if options.show:
        for _, row in rows:
            print(transcript.ascii_json(row))
        return
    questions = [reading.parse_question(place, reading.own_row(place, row), options.benchmark) for place, row in rows]
    player = StandIn(options.spec, questions)

    def started(port: int) -> None:
        print(f"simulated replies, no model: openai:{player.model}@http://{options.host}:{port}/v1")
        for question in questions[:2] if not options.spec.startswith("mock") else ():
            print(f"  knows: {printable(question.question)}")
        print("Ctrl-C ends it", flush=True)

    app = player.application(serving.MAX_BODY_BYTES, options.host)
    serving.run_server(partial(serving.serve, app, options.host, options.port, started))


main = command(stand_in_for_a_model, "stand-in")
