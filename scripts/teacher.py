"""Options of a teacher, what it will cost, what it did: shared by the commands that verify."""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path

from builders.verified.collect import Build, questions
from builders.verified.estimate import estimate
from builders.verified.teachers import Teachers
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.teachers.llm import IN_FLIGHT, LLMTeachers
from safe_stepwise.engines.cache import default_cache as default_cache
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.open import KINDS, open_engine
from scripts.cli import positive, table


def add_teacher_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options of a model as teacher; returns their group, for more of them."""
    model = parser.add_argument_group("a model as teacher")
    model.add_argument(
        "--cache",
        type=Path,
        metavar="FILE",
        help="replies (default $SAFE_STEPWISE_CACHE or ~/.cache/safe_stepwise/replies.sqlite)",
    )
    model.add_argument(
        "--in-flight",
        type=positive,
        default=IN_FLIGHT,
        metavar="N",
        help=f"requests under way at a time (default {IN_FLIGHT})",
    )
    return model


def known_teacher(
    spec: str, cache: Path | None = None, in_flight: int = IN_FLIGHT, *, where: str = "--teacher"
) -> Teachers:
    """What makes the teachers of a spec; raises ``UserError`` for a spec that can't be read."""
    if spec == "annotations":
        return AnnotationsTeacher
    if difflib.get_close_matches(spec.lower(), ["annotations"], cutoff=0.8):
        raise UserError(f"{where} {spec!r} is not known; did you mean annotations?")
    try:
        open_engine(spec)
    except UserError as error:
        names_one = spec.partition(":")[0] in KINDS
        other = "" if names_one else "; or use annotations, which needs no model"
        raise UserError(f"{where}: {error}{other}") from None
    return LLMTeachers(spec, cache or default_cache(), in_flight)


def foreseen(plan: Build, price_prompt: float | None, price_completion: float | None) -> str:
    """A table of the calls and tokens that the build would take at most."""
    if not isinstance(plan.teacher, LLMTeachers):
        return "the annotations teacher asks no model: nothing to pay"
    if (price_prompt is None) != (price_completion is None):
        raise UserError("--price-prompt and --price-completion go together: give both, or neither")
    work = estimate(questions(plan), plan.teacher)
    rows = [(role, w.naive, w.stored, w.calls, w.prompt, w.completion) for role, w in work.items()]
    header = ("at most", "naive calls", "in the cache", "calls", "prompt tokens", "reply tokens")
    total = [sum(row[i] for row in rows) for i in range(1, len(header))]  # type: ignore[misc]
    lines = [table([header, *rows, ("total", *total)])]
    saved = 1 - (total[1] + total[2]) / total[0] if total[0] else 0.0
    lines.append(f"\nnaive: each question for itself. Passages that are shared save {saved:.1%}.")
    lines.append(
        "The cache is looked into for extraction only: what else is asked depends on the replies,"
        " so after a run, or a part of one, far less is owed than this."
    )
    if price_prompt is not None and price_completion is not None:
        cost = sum(w.cost(price_prompt, price_completion) for w in work.values())
        lines.append(f"cost at these prices: at most {cost:,.2f} (prefix caching not counted)")
    return "\n".join(lines)


def client_of(asker: object) -> Client | None:
    """The client of teachers or of a maker of steps; None if they ask no model."""
    client = getattr(asker, "client", None)
    return client if isinstance(client, Client) else None


def spending(client: Client | None) -> str:
    """A table of the calls and tokens of this run by role; empty where it asked no model."""
    if client is None or not client.accounts:
        return ""
    tokens = ("prompt tokens", "of them cached", "reply tokens")
    header = ("role", "from cache", "calls", "retries", "failed", *tokens)
    rows = [
        (role, a.hits, a.calls, a.retries, a.failed, a.prompt, a.cached, a.completion)
        for role, a in [*client.accounts.items(), ("total", client.total())]
    ]
    return f"\nThe teacher's work in this run:\n\n{table([header, *rows])}"
