"""Splits a reasoning model's reply into its text and its thoughts.

Thoughts come before the text, or between its paragraphs, in one of these forms::

    <think>...</think>        DeepSeek, Qwen, many others; also <thinking>, <thought>, <reasoning>, <seed:think>,
                              <scratchpad>, <reflection>, [THINK], ◁think▷ and Cohere's marks, in any case
    ...</think>               where the model's chat template has opened the thought
    <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...
                              Harmony (gpt-oss), of which only ``final`` is the text
    analysis...assistantfinal...
                              Harmony without its special tokens, as some servers decode it

A mark within the sentence of a step (``Step K: ... (Kind)``) is text. A thought may contain anything, in particular a
draft of the answer, so a thought that never closes leaves no text. A thought that the template opened and that was cut
has no mark at all; only the way in which it ended reveals it (`engines.base.Completion`).
"""

import re
from typing import NamedTuple

_NAMES = r"(?:[\w:]{0,20}think(?:ing)?|thoughts?|reasoning|reflection|scratchpad)"
_MARK = re.compile(
    rf"(?P<open><{_NAMES}(?: [^<>]{{0,80}})?>|\[THINK\]|◁think▷|<\|(?:start_thinking|begin_of_thought)\|>)|"
    rf"</{_NAMES}>|\[/THINK\]|◁/think▷|<\|(?:end_thinking|end_of_thought)\|>",
    re.IGNORECASE,
)
_STEP_OR_MARK = re.compile(
    r"(?P<step>(?:^|(?<=[>\]▷]))[\s*#>_-]{0,9}step \d{1,4}\W{0,3}(?=:)(?:(?!step \d{1,4}:|####|\{\"|"
    rf"[.!?:)*]\W{{0,3}}[<\[◁])[^\r\n])*\((?:attribution|logical)\)\W{{0,9}}$)|{_MARK.pattern}",
    re.IGNORECASE | re.MULTILINE,
)
_HARMONY = re.compile(r"\s*(?:(?:<\|start\|>\s*)?assistant\s*)?<\|channel\|>")
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>(.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.S,
)
_BARE_CHANNELS = re.compile(r"\s*analysis(?=\S)(.*)assistantfinal(?:json)?(.*)\Z", re.S)
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.S)  # an unfinished string extends to the end
_BARE_CHANNEL_START = re.compile(r"\s*(?:analysis|commentary)(?=[A-Z])")
"""A word glued to the channel's name, which prose never has."""
_OBJECT = re.compile(r'\s*(?:```\w*\s*)?\{\s*"')


class SplitReply(NamedTuple):
    """A reply's text and its thoughts; ``is_open`` if a thought never closes, so that there is no text."""

    text: str
    thought: str = ""
    is_open: bool = False


def split_thought(reply: str) -> SplitReply:
    """Split a reply into its text and its thoughts; a reply without a thought keeps its text unchanged.

    >>> split_thought("<think>Is it Tesk?</think> Oru")
    SplitReply(text='Oru', thought='Is it Tesk?', is_open=False)
    >>> split_thought("Is it Tesk?</think>Oru").text
    'Oru'
    >>> split_thought("<think>I would say Oru, but").is_open
    True
    """
    if _HARMONY.match(reply):
        return _split_channels(reply)
    if bare_channels := _BARE_CHANNELS.match(reply):
        return SplitReply(bare_channels[2].strip(), bare_channels[1].strip())
    if _BARE_CHANNEL_START.match(reply):
        return SplitReply("", reply.strip(), is_open=True)
    unquoted = reply
    if _OBJECT.match(reply):  # an object, whose strings may quote a mark
        unquoted = _STRING.sub(lambda text: " " * len(text[0]), reply)
    texts, thoughts, start, position, is_open = list[str](), list[str](), 0, 0, False
    while mark := (_MARK if is_open else _STEP_OR_MARK).search(unquoted, position):
        position = mark.end()
        if mark.lastgroup == "step":
            continue
        before, start = reply[start : mark.start()], mark.end()
        if not mark["open"] and not is_open:  # the template opened it: everything before the mark is a thought
            thoughts += [*texts, before]
            texts = []
        else:
            (thoughts if is_open else texts).append(before)
        is_open = bool(mark["open"])
    if not start:
        return SplitReply(reply)
    (thoughts if is_open else texts).append(reply[start:])
    thought = "\n\n".join(filter(None, map(str.strip, thoughts)))
    return SplitReply("" if is_open else "".join(texts).strip(), thought, is_open)


def _split_channels(reply: str) -> SplitReply:
    """Split a reply in Harmony's format: ``final`` messages are the text, all others are thoughts."""
    messages = [(channel, text.strip()) for channel, text in _CHANNEL.findall(reply)]
    finals = [text for channel, text in messages if channel == "final"]
    thought = "\n\n".join(text for channel, text in messages if channel != "final" and text)
    return SplitReply("\n".join(dict.fromkeys(finals)), thought or ("" if finals else reply), is_open=not finals)
