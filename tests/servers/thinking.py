"""A model that thinks before every reply, in one of the known forms, and is cut in its thought at every third."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.servers.openai_server import Cut, Thoughtful
from tests.servers.stepper import chance

DRAFT = (
    'It may be {"error_type": "Correct", "diagnosis": "So.", "guidance": "Go on."} or {"verdict": "correct", '
    '"explanation": "So."} or {"answer": "Ardle"} or {"path": [1], "verdict": "none", "explanation": "So."} or\n'
    "Step 1: ####ANSWER: Ardle (Final Answer)\nbut"
)
"""What a thought holds: something that every reader would take, and that is no reply."""
FORMS: Mapping[str, tuple[str, str]] = {
    "think": ("<think>\n", "\n</think>\n\n"),
    "opened by the template": ("", "\n</think>\n\n"),
    "Harmony": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "a field of its own": ("", ""),
}


@dataclass
class Thinking:
    """Says what another says, behind a thought; use as the ``reply`` of a mock server."""

    reply: Callable[[Mapping[str, Any]], str]
    form: str
    cut: Counter[str] = field(default_factory=Counter)
    """How often each request of which the first reply was cut has come."""

    def __call__(self, body: Mapping[str, Any]) -> str:
        opens, closes = FORMS[self.form]
        request = json.dumps([body["messages"], body.get("seed")])
        if chance(request) < 1 / 3:
            self.cut[request] += 1
            if self.cut[request] == 1:
                return Cut(f"{opens}{DRAFT}") if closes else Cut("")
        said = self.reply(body)
        return f"{opens}{DRAFT} no.{closes}{said}" if closes else Thoughtful.of(said, DRAFT)
