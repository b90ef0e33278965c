"""A model that plays generator, verifier and judge of the loop, by what it reads in the prompt.

A question names its own answer ("... of AB12?"), reached in ``steps`` steps. The first try at a
step is flawed, by chance of its question and number, at ``flawed``; the verifier sees every flaw.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from safe_stepwise import prompts


@dataclass(frozen=True)
class Stepper:
    """See the module docstring; use as the ``reply`` of a mock server."""

    flawed: float = 0.4
    steps: int = 2

    def __call__(self, body: Mapping[str, Any]) -> str:
        system, user = (message["content"] for message in body["messages"])
        if system.startswith(prompts.load("loop/verify").system):
            return self.verdict(user)
        if "Contestant's answer" in user:
            return self.judged(user)
        return self.step(user)

    def step(self, user: str) -> str:
        answer = found(r"^Question: .* of (\w+)\?", user)
        number = int(found(r"Step (\d+)[.:][^\n]*\Z", user))
        is_flawed = chance(f"{answer} {number}") < self.flawed and "\nRejected: " not in user
        said = "a wrong thing" if is_flawed else "one more thing"
        if number < self.steps:
            return f"Step {number}: According to Passage 1, {answer} is {said}. (Attribution)"
        return f"Step {number}: ####ANSWER: {'Wrong' if is_flawed else answer} (Final Answer)"

    def verdict(self, user: str) -> str:
        step = re.findall(r'^"Step .*$', user, re.MULTILINE)[-1]
        wrong = "rong" in step
        label = ("Wrong Conclusion" if "####" in step else "Contradictory") if wrong else "Correct"
        return json.dumps({"error_type": label, "diagnosis": "So.", "guidance": "Go on."})

    def judged(self, user: str) -> str:
        answer = found(r"^Contestant's answer: (.*)$", user)
        right = f"\n- {answer}\n" in user
        verdict = "correct" if right else "incorrect"
        return json.dumps({"verdict": verdict, "explanation": "It says as much."})


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    assert match, (pattern, text)
    return match[1]


def chance(text: str) -> float:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32
