"""What a reasoning model thought, kept apart from what it said.

Thoughts stand before a reply, or between its parts, in one of these forms::

    <think>...</think>        DeepSeek, Qwen, many others; also <thinking>, <thought>, <reasoning>, <seed:think>,
                              [THINK] and ◁think▷, in any case of letters
    ...</think>               the same where the model's chat template has opened the thought
    <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...
                              Harmony (gpt-oss), of which ``final`` alone is said
    analysis...assistantfinal...
                              Harmony without its special tokens, as some servers decode it

A thought may hold anything, a draft of the answer above all, so one that never closes leaves nothing to be read. A
cut thought that its template opened has no mark at all: only that it was cut tells it (`engines.base.Completion`).
"""

import re
from typing import NamedTuple

_MARK = re.compile(
    r"(?P<open><(?:(?:seed:)?think(?:ing)?|thought|reasoning)>|\[THINK\]|◁think▷)"
    r"|</(?:(?:seed:)?think(?:ing)?|thought|reasoning)>|\[/THINK\]|◁/think▷",
    re.IGNORECASE,
)
_HARMONY = re.compile(r"\s*(?:<\|start\|>\s*assistant\s*)?<\|channel\|>")
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>(.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.S,
)
_BARE_CHANNELS = re.compile(r"\s*analysis(?=\S)(.*)assistantfinal(?:json)?(.*)\Z", re.S)
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.S)  # one that breaks off runs to the end, in one go
_BARE_OPENS = re.compile(r"\s*analysis(?=[A-Z][a-z'])")
"""A word glued to the channel's name, which no prose has."""


class Parts(NamedTuple):
    """A reply taken apart; ``is_open`` where a thought never closes, which leaves no text."""

    text: str
    thought: str = ""
    is_open: bool = False


def split_thought(reply: str) -> Parts:
    """The text of a reply without its thoughts, and these; a reply without any stays as it is.

    >>> split_thought("<think>Is it Tesk?</think> Oru")
    Parts(text='Oru', thought='Is it Tesk?', is_open=False)
    >>> split_thought("Is it Tesk?</think>Oru").text
    'Oru'
    >>> split_thought("<think>I would say Oru, but").is_open
    True
    """
    if _HARMONY.match(reply):
        return _channels(reply)
    if bare := _BARE_CHANNELS.match(reply):
        return Parts(bare[2].strip(), bare[1].strip())
    if _BARE_OPENS.match(reply):
        return Parts("", reply.strip(), is_open=True)
    unquoted = reply
    if reply.lstrip().startswith("{"):  # an object, which may quote a mark in one of its texts
        unquoted = _STRING.sub(lambda text: " " * len(text[0]), reply)
    spoken, thoughts, at, is_open = list[str](), list[str](), 0, False
    for mark in _MARK.finditer(unquoted):
        before, at = reply[at : mark.start()], mark.end()
        if not mark["open"] and not is_open:  # opened by the template: all that stands before it is thought
            thoughts += [*spoken, before]
            spoken = []
        else:
            (thoughts if is_open else spoken).append(before)
        is_open = bool(mark["open"])
    if not at:
        return Parts(reply)
    (thoughts if is_open else spoken).append(reply[at:])
    thought = "\n\n".join(filter(None, map(str.strip, thoughts)))
    return Parts("" if is_open else "".join(spoken).strip(), thought, is_open)


def _channels(reply: str) -> Parts:
    """Harmony: the last ``final`` message is what is said, all others are thoughts."""
    messages = [(channel, text.strip()) for channel, text in _CHANNEL.findall(reply)]
    finals = [text for channel, text in messages if channel == "final"]
    thought = "\n\n".join(text for channel, text in messages if channel != "final" and text)
    return Parts(finals[-1] if finals else "", thought or ("" if finals else reply), is_open=not finals)
