"""Define the columns of a set of relation paths, and make its rows from searched questions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from builders.paths.negatives import HARD, KINDS, POSITIVE, sample_paths
from builders.paths.weak import Candidate, drop_rare
from safe_stepwise.methods.path_proposing import completion_of, propose_request
from safe_stepwise.records import RelationPath, identity
from safe_stepwise.store.names import KTO, PATHS, PROMPT_COMPLETION

ORIGINS = ("weak", "gold")
CONFIGS = (PATHS, PROMPT_COMPLETION, KTO)
Row = dict[str, Any]


def config_features(config: str) -> Any:
    """Return the `datasets.Features` of a config, split either way."""
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


def candidates_of(searched: Mapping[str, Any]) -> tuple[Candidate, ...]:
    return tuple(Candidate(tuple(c["path"]), c["f1"], c["shortest"], c["tied"]) for c in searched["candidates"])


@dataclass(frozen=True)
class LabelledTopic:
    """A topic entity of a question with its paths, labelled by the counts of the whole corpus."""

    searched: Mapping[str, Any]
    """The topic entity's row in a shard."""
    candidates: tuple[Candidate, ...]
    best: tuple[RelationPath, ...]
    gold: RelationPath | None

    @classmethod
    def read(cls, searched: Row, popular: Mapping[RelationPath, float], gold: Mapping[str, RelationPath]) -> Self:
        """Label a row of a shard; ``popular``, how often each path is best, decides between tied paths."""
        candidates = candidates_of(searched)
        best = drop_rare([c.path for c in candidates if c.tied], popular)
        return cls(searched, candidates, tuple(best), gold.get(searched["template"]))

    @property
    def top_f1(self) -> float:
        """The best execution F1 of any path; 0 without paths."""
        return max((c.f1 for c in self.candidates), default=0.0)

    @property
    def shortest(self) -> list[RelationPath]:
        """The shortest paths (equation 1 of Deliberation on Priors)."""
        return [c.path for c in self.candidates if c.shortest]

    def kinds_by_path(self, limit: int, key: str) -> dict[RelationPath, str]:
        """Return the positive paths, then the negative ones, with their kinds; arguments as in `negatives`."""
        kinds = dict.fromkeys(self.best, POSITIVE)
        for kind in KINDS[1:]:
            shard_negatives = [n for n in self.searched["negatives"] if n["kind"] == kind]
            paths = dict.fromkeys(tuple(n["path"]) for n in shard_negatives if tuple(n["of"]) in self.best)
            new = [path for path in paths if path not in kinds]
            kinds |= dict.fromkeys(sample_paths(new, key, limit) if kind in HARD else new, kind)
        return kinds

    def rows(self, benchmark: str, kinds: Mapping[RelationPath, str]) -> dict[str, list[Row]]:
        """Return the rows of each config; ``kinds`` are those of `kinds_by_path`."""
        return {
            PATHS: [*self._paths()],
            PROMPT_COMPLETION: [{**self._turns(benchmark, path), "rank": n} for n, path in enumerate(self.best)],
            KTO: [
                {**self._turns(benchmark, path, kind), "label": kind == POSITIVE, "kind": KINDS.index(kind)}
                for path, kind in kinds.items()
            ],
        }

    def _paths(self) -> Iterable[Row]:
        """Yield the rows of the weak paths, by either rule, and of the gold path."""
        candidates = [c for c in self.candidates if c.shortest or c.path in self.best or c.path == self.gold]
        if self.gold is not None and self.gold not in {c.path for c in candidates}:
            candidates.append(Candidate(self.gold, 0.0, False))  # it leads to no answer
        keys = {name: self.searched[name] for name in ("question_id", "question", "topic", "template", "hops")}
        for candidate in candidates:
            is_gold = candidate.path == self.gold
            yield {
                **keys,
                "path": list(candidate.path),
                "origin": int(is_gold),
                "f1": candidate.f1,
                "shortest": candidate.shortest,
                "best": candidate.path in self.best,
                "gold": None if self.gold is None else is_gold,
                # Whether equation 1 proposes a path with a lower F1 than another.
                "spurious": candidate.shortest and candidate.f1 < self.top_f1,
            }

    def _turns(self, benchmark: str, path: RelationPath, kind: str = "") -> Row:
        """Return the columns that all rows in conversational form share."""
        question_id = self.searched["question_id"]
        return {
            "id": identity([benchmark, question_id, self.searched["topic"], path, kind])[:16],
            "question_id": question_id,
            "hops": self.searched["hops"],
            "prompt": self._prompt,
            "completion": [{"role": "assistant", "content": completion_of(path)}],
        }

    @cached_property
    def _prompt(self) -> list[Row]:
        """The prompt that the deliberation loop would send."""
        request = propose_request(self.searched["question"], self.searched["topic"])
        return [{"role": turn.role, "content": turn.content} for turn in request.messages]
