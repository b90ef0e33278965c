"""The columns of a set of relation paths, and the way from searched questions to its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builders.paths.negatives import HARD, KINDS, POSITIVE, drawn
from builders.paths.weak import Candidate, settled
from safe_stepwise.methods.path_proposing import completion_of, propose_request
from safe_stepwise.records import RelationPath, identity
from safe_stepwise.store.names import KTO, PATHS, PROMPT_COMPLETION

ORIGINS = ("weak", "gold")
CONFIGS = (PATHS, PROMPT_COMPLETION, KTO)

Row = dict[str, Any]


def config_features(config: str) -> Any:
    """The `datasets.Features` of a config, split either way."""
    from datasets import ClassLabel, Features, List, Value

    text, flag, number = Value("string"), Value("bool"), Value("int32")
    turns = List({"role": text, "content": text})
    keys = {"id": text, "question_id": text, "hops": number}
    if config.startswith(PROMPT_COMPLETION):
        return Features({**keys, "rank": number, "prompt": turns, "completion": turns})
    if config.startswith(KTO):
        kind = ClassLabel(names=list(KINDS))
        return Features({**keys, "prompt": turns, "completion": turns, "label": flag, "kind": kind})
    return Features(
        {
            "question_id": text,
            "question": text,
            "topic": text,
            "template": text,
            "hops": number,
            "path": List(text),
            "origin": ClassLabel(names=list(ORIGINS)),
            "f1": Value("float64"),
            "shortest": flag,
            "best": flag,
            "gold": flag,
            "spurious": flag,
        }
    )


@dataclass(frozen=True, slots=True)
class Labelled:
    """A topic entity of a question with its paths, once the whole corpus has been looked at."""

    searched: Mapping[str, Any]
    """Its row of a shard."""
    candidates: tuple[Candidate, ...]
    best: tuple[RelationPath, ...]
    gold: RelationPath | None

    @property
    def top(self) -> float:
        """The best F1 of any path."""
        return max((c.f1 for c in self.candidates), default=0.0)

    @property
    def shortest(self) -> list[RelationPath]:
        """The paths of equation 1."""
        return [c.path for c in self.candidates if c.shortest]

    def is_spurious(self, candidate: Candidate) -> bool:
        """Whether equation 1 proposes a path that others of the question outdo."""
        return candidate.shortest and candidate.f1 < self.top


def labelled(
    searched: Mapping[str, Any], popular: Mapping[RelationPath, float], gold: Mapping[str, RelationPath]
) -> Labelled:
    """A row of a shard, its ties settled."""
    candidates = candidates_of(searched)
    best = settled([c.path for c in candidates if c.tied], popular)
    return Labelled(searched, candidates, tuple(best), gold.get(searched["template"]))


def candidates_of(searched: Mapping[str, Any]) -> tuple[Candidate, ...]:
    """The candidates of a row of a shard."""
    found = searched["candidates"]
    return tuple(Candidate(tuple(c["path"]), c["f1"], c["shortest"], c["tied"]) for c in found)


def rows_of(benchmark: str, one: Labelled, told: Sequence[tuple[RelationPath, str]]) -> dict[str, list[Row]]:
    """The rows of each config; ``told`` are the paths that `judged` found."""
    turns = _Turns(benchmark, one.searched)
    return {
        PATHS: _paths(one),
        PROMPT_COMPLETION: [{**turns.row(path), "rank": rank} for rank, path in enumerate(one.best)],
        KTO: [{**turns.row(path, kind), "label": kind == POSITIVE, "kind": KINDS.index(kind)} for path, kind in told],
    }


def judged(one: Labelled, most: int, key: str) -> list[tuple[RelationPath, str]]:
    """The paths to prefer, then those not to, each once with its kind.

    ``most`` and ``key`` are as of `negatives`.
    """
    kept, found = set(one.best), dict.fromkeys(one.best, POSITIVE)
    for kind in KINDS[1:]:
        made = [n for n in one.searched["negatives"] if n["kind"] == kind]
        paths = dict.fromkeys(tuple(n["path"]) for n in made if tuple(n["of"]) in kept)
        new = [path for path in paths if path not in found]
        for path in drawn(new, key, most) if kind in HARD else new:
            found[path] = kind
    return list(found.items())


def _paths(one: Labelled) -> list[Row]:
    """The weak paths of either rule, and the gold one."""
    shown = [c for c in one.candidates if c.shortest or c.path in one.best or c.path == one.gold]
    if one.gold is not None and one.gold not in {c.path for c in shown}:
        shown.append(Candidate(one.gold, 0.0, False))  # it leads to no answer
    told = ("question_id", "question", "topic", "template", "hops")
    return [
        {
            **{name: one.searched[name] for name in told},
            "path": list(c.path),
            "origin": int(c.path == one.gold),
            "f1": c.f1,
            "shortest": c.shortest,
            "best": c.path in one.best,
            "gold": None if one.gold is None else c.path == one.gold,
            "spurious": one.is_spurious(c),
        }
        for c in shown
    ]


class _Turns:
    """The prompt of a topic entity, rendered once, as the loop would ask it."""

    def __init__(self, benchmark: str, searched: Mapping[str, Any]) -> None:
        self._benchmark, self._of = benchmark, searched
        self._prompt: Sequence[Row] = ()

    def row(self, path: RelationPath, kind: str = "") -> Row:
        """What every row in TRL's conversational form has."""
        if not self._prompt:
            request = propose_request(self._of["question"], self._of["topic"])
            self._prompt = [{"role": t.role, "content": t.content} for t in request.messages]
        known = [self._benchmark, self._of["question_id"], self._of["topic"], path, kind]
        return {
            "id": identity(known)[:16],
            "question_id": self._of["question_id"],
            "hops": self._of["hops"],
            "prompt": self._prompt,
            "completion": [{"role": "assistant", "content": completion_of(path)}],
        }
