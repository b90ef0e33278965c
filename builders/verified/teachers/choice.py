"""Which teacher a spec names, and what it spent."""

import difflib
from pathlib import Path

from builders.verified.teachers import Teachers
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.teachers.llm import LLMTeachers
from builders.verified.teachers.published import known_lists
from safe_stepwise.engines.base import AS_PROMPTED, Allowance
from safe_stepwise.engines.client import IN_FLIGHT, Client, default_cache
from safe_stepwise.errors import UserError, at_place
from safe_stepwise.open import KINDS, Opener, open_engine
from safe_stepwise.store.agreement import PUBLISHED
from safe_stepwise.store.tables import text_table

ANNOTATIONS = "annotations"


def known_teacher(
    spec: str,
    cache: Path | None = None,
    in_flight: int = IN_FLIGHT,
    timeout: float | None = None,
    *,
    allowance: Allowance = AS_PROMPTED,
    where: str = "--teacher",
    lists: Path | None = None,
) -> Teachers:
    """What makes the teachers of a spec: ``annotations``, lists, a model behind a cache of replies.

    ``timeout`` is that of `Opener`, ``allowance`` of `LLMTeachers`, ``lists`` the folder of lists
    that a spec names; None where none can be named, as they write no steps. Raises ``UserError``,
    which begins with ``where``, for a spec that can't be read.
    """
    if spec == ANNOTATIONS:
        return AnnotationsTeacher
    kind, colon, rest = spec.partition(":")
    if kind == PUBLISHED and lists is None:
        raise UserError(f"{where} {spec!r}: lists label questions and write no steps; use {ANNOTATIONS}, or a model")
    if kind == PUBLISHED and lists is not None:
        files = rest.split(",")
        if not all(files):
            raise UserError(f"{where} {spec!r}: name the lists, as {PUBLISHED}:FILE[,FILE]")
        with at_place(where):
            return known_lists([lists / file for file in files])
    if difflib.get_close_matches(spec.lower(), [ANNOTATIONS], cutoff=0.8):
        raise UserError(f"{where} {spec!r} is not known; did you mean {ANNOTATIONS}?")
    try:
        open_engine(spec)
    except UserError as error:
        if lists is not None and difflib.get_close_matches(kind.lower(), [PUBLISHED], cutoff=0.7):
            near = f"{PUBLISHED}{colon}{rest}"
            raise UserError(f"{where} {spec!r} is not known; did you mean {near}?") from None
        no_model = f", or {PUBLISHED}:FILE, which need" if lists is not None else ", which needs"
        other = "" if kind in KINDS else f"; or use {ANNOTATIONS}{no_model} no model"
        raise UserError(f"{where}: {error}{other}") from None
    return LLMTeachers(spec, cache or default_cache(), Opener(timeout), in_flight, allowance)


def client_of(asker: object) -> Client | None:
    """The client of teachers or of a maker of steps; None if they ask no model."""
    client = getattr(asker, "client", None)
    return client if isinstance(client, Client) else None


def spending(client: Client | None) -> str:
    """A table of the calls and tokens of this run by role; empty where it asked no model."""
    if client is None or not client.accounts:
        return ""
    header = ["role", "from cache", "calls", "retries", "failed", "prompt tokens", "of them cached", "reply tokens"]
    header += ["of them thought"] if client.total().thought else []
    rows = [
        (role, a.hits, a.calls, a.retries, a.failed, a.prompt, a.cached, a.completion, a.thought)[: len(header)]
        for role, a in [*client.accounts.items(), ("total", client.total())]
    ]
    return f"\nThe teacher's work in this run:\n\n{text_table([header, *rows])}"
