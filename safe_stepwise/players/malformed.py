"""Replies that are not in the form asked for, at the rate ``format``.

Some can be salvaged: all that they should say stands there, but not as valid JSON alone. Of others
nothing can be read: they break off, give two answers, or no object at all.
"""

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from safe_stepwise.players.symbolic import Rates

Said = Mapping[str, Any]


def written(said: Said, rates: Rates, chance: Random) -> str:
    """What is said as JSON, in the right form or not."""
    text = json.dumps(said, ensure_ascii=False)
    if chance.random() >= rates.format:
        return text
    ways = SALVAGEABLE if chance.random() < rates.salvageable else UNREADABLE
    return chance.choice(ways)(said, text)


def turned(text: str, rates: Rates, chance: Random) -> str:
    """A turn of ReAct, which is no JSON, in the right form or not."""
    if chance.random() >= rates.format:
        return text
    if chance.random() < rates.salvageable:
        return f"{text}\nObservation: That is all there is."
    return chance.choice((text.replace("Action:", "Then"), text.replace("[", "(", 1)))


def _in_prose(said: Said, text: str) -> str:
    return f"Here is what you asked for: {text} I hope that this is of use."


def _trailing(said: Said, text: str) -> str:
    return f"{text[:-1]},}}"


def _in_words(said: Said, text: str) -> str:
    """The answer as a last line, where there is one that stands for itself."""
    if "explain" not in said or "answer" not in said:
        return _in_prose(said, text)
    return f"{said['explain']}\nAnswer: {said['answer']}"


def _cut(said: Said, text: str) -> str:
    return text[: text.index(":") + 2]


def _declined(said: Said, text: str) -> str:
    return "It is hard to put this into the form that was asked for, so it is left open."


def _doubled(said: Said, text: str) -> str:
    """Two replies in one, which differ in every text that counts."""
    return f"{text}\nOr rather:\n{json.dumps({k: _other(v) for k, v in said.items()})}"


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return f"{value} the Other" if isinstance(value, str) else value


_Way = Callable[[Said, str], str]
SALVAGEABLE: tuple[_Way, ...] = (_in_prose, _trailing, _in_words)
UNREADABLE: tuple[_Way, ...] = (_cut, _declined, _doubled)
