"""Resolves a teacher's spec, and reports what a teacher spent."""

from pathlib import Path

from builders.verified.teachers import Teachers, published
from builders.verified.teachers.adjudicating import AdjudicatingTeachers
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.teachers.llm import LLMTeachers
from safe_stepwise.engines.base import AS_PROMPTED, Allowance
from safe_stepwise.engines.client import IN_FLIGHT, Client, default_cache
from safe_stepwise.errors import UserError, at_place
from safe_stepwise.open import KINDS, Opener, open_engine
from safe_stepwise.store import published_labels, tables

ANNOTATIONS = "annotations"


def resolve_teacher(
    spec: str,
    cache: Path | None = None,
    in_flight: int = IN_FLIGHT,
    timeout: float | None = None,
    *,
    allowance: Allowance = AS_PROMPTED,
    option: str = "--teacher",
    lists: Path | None = None,
    adjudicator: str | None = None,
) -> Teachers:
    """Return the teachers that a spec names: ``annotations``, lists, or a model behind a cache of replies.

    ``lists`` is the folder of the lists, None if they are refused, as they write no steps. ``adjudicator`` is the spec
    of a model to ask about what the annotations doubt. Raises ``UserError``, which begins with ``option``, for a bad
    spec.
    """
    if adjudicator is not None:
        with at_place(option.replace("teacher", "adjudicate")):
            if spec != ANNOTATIONS:
                raise UserError(f"only {ANNOTATIONS} have doubts to ask about; use {option} {ANNOTATIONS}")
            if adjudicator.partition(":")[0] in ("symbolic", "chance"):
                raise UserError(f"{adjudicator} reads no passage; to try it out without a model, use mock:FILE")
            open_engine(adjudicator)
        return AdjudicatingTeachers(adjudicator, cache or default_cache(), Opener(timeout), in_flight, allowance)
    if spec == ANNOTATIONS:
        return AnnotationsTeacher
    kind, _, file_names = spec.partition(":")
    if kind == published_labels.PUBLISHED and lists is None:
        raise UserError(f"{option} {spec!r}: lists label questions and write no steps; use {ANNOTATIONS}, or a model")
    if kind == published_labels.PUBLISHED and lists is not None:
        files = file_names.split(",")
        if not all(files):
            raise UserError(f"{option} {spec!r}: name the lists, as {published_labels.PUBLISHED}:FILE[,FILE]")
        with at_place(option):
            return published.load_lists(lists / file for file in files)
    try:
        open_engine(spec)
    except UserError as error:
        no_model = f", or {published_labels.PUBLISHED}:FILE, which need" if lists is not None else ", which needs"
        advice = "" if kind in KINDS else f"; or use {ANNOTATIONS}{no_model} no model"
        raise UserError(f"{option}: {error}{advice}") from None
    return LLMTeachers(spec, cache or default_cache(), Opener(timeout), in_flight, allowance)


def client_of(asker: object) -> Client | None:
    """Return the client of a teacher or of a maker of steps; None if it asks no model."""
    client = getattr(asker, "client", None)
    return client if isinstance(client, Client) else None


def describe_unreadable(asker: object) -> str:
    """Say, as a clause, how a model's first reply begins and why it is unreadable; "" if it gave a readable one."""
    client = client_of(asker)
    return f"; {client.readability.first}" if client is not None and client.readability.first else ""


def spending(client: Client | None) -> str:
    """Render the calls and tokens of this run by role; empty if no model was asked."""
    if client is None or not client.accounts:
        return ""
    header = ["role", "from cache", "calls", "retries", "failed", "prompt tokens", "of them cached", "reply tokens"]
    header += ["of them thought"] if client.total().thought else []
    rows = [
        (role, a.hits, a.calls, a.retries, a.failed, a.prompt, a.cached, a.completion, a.thought)[: len(header)]
        for role, a in [*client.accounts.items(), ("total", client.total())]
    ]
    return f"\nThe teacher's work in this run:\n\n{tables.text_table([header, *rows])}"
