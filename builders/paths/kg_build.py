"""Builds a set of relation paths, ``dp-BENCHMARK-paths``, from questions over a knowledge graph.

Questions are searched chunk by chunk into ``OUTPUT/.work/paths-BENCHMARK``. Then the shards are read twice: once for
the counts of the whole corpus (how often a path is best, gold paths by template), and once to write the rows. The
dataset replaces an earlier one as a whole. A *topic* is an entity in which a question's paths start; a *template* is
what its question shares with others; a *gold* path is annotated, or its template's; a *rule* chooses a topic's paths.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

from builders.benchmarks.sources import InputSource
from builders.paths import relation_readers, weak
from builders.paths.kg_collect import PathsBuild, Searcher, jobs
from builders.paths.weak import HARD, KINDS, POSITIVE, ScoredPath, drop_rare, sample_paths
from builders.work import parquet, plans, publishing
from builders.work.collect import Collected, collect
from builders.work.columns import features
from builders.work.rejects import RejectPolicy
from safe_stepwise.engines.base import Request, conversation
from safe_stepwise.errors import UserError
from safe_stepwise.methods.path_proposing import completion_of, prompt_digest, propose_request
from safe_stepwise.records import RelationPath, identity
from safe_stepwise.store import names, tables
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.progress import show_progress

ORIGINS = ("weak", "gold")
CONFIGS = (names.PATHS, names.PROMPT_COMPLETION, names.KTO)
Row = dict[str, Any]


def config_features(config: str) -> Any:
    """Return the `datasets.Features` of a config, split either way."""
    if config.startswith(names.PROMPT_COMPLETION):
        return features("proposal", "rank", "turns")
    if config.startswith(names.KTO):
        return features("proposal", "turns", "desirable", "kind", kind=KINDS)
    return features("relation_path", origin=ORIGINS)


def candidates_of(searched: Mapping[str, Any]) -> tuple[ScoredPath, ...]:
    return tuple(ScoredPath(**{**c, "path": tuple(c["path"])}) for c in searched["candidates"])


@dataclass(frozen=True)
class LabelledTopic:
    """A topic entity of a question with its paths, labelled by the counts of the whole corpus."""

    searched: Mapping[str, Any]
    """The topic entity's row in a shard."""
    candidates: tuple[ScoredPath, ...]
    best: tuple[RelationPath, ...]
    gold: tuple[RelationPath, ...]

    @classmethod
    def read(cls, searched: Row, popular: Mapping[RelationPath, float], gold: Mapping[str, RelationPath]) -> Self:
        """Label a row of a shard; ``popular``, how often each path is best, decides between tied paths."""
        candidates = candidates_of(searched)
        best = drop_rare([c.path for c in candidates if c.is_best], popular)
        template_gold = filter(None, [gold.get(searched["template"])])
        return cls(searched, candidates, tuple(best), tuple(map(tuple, searched["gold"])) or tuple(template_gold))

    @property
    def top_f1(self) -> float:
        """The best execution F1 of any path; 0 without paths."""
        return max((c.f1 for c in self.candidates), default=0.0)

    def kinds_by_path(self, limit: int, key: str) -> dict[RelationPath, str]:
        """Return the positive paths, then the negative ones, with their kinds; arguments as in `weak.negatives`."""
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
            names.PATHS: [*self._paths()],
            names.PROMPT_COMPLETION: [{**self._turns(benchmark, path), "rank": n} for n, path in enumerate(self.best)],
            names.KTO: [
                {**self._turns(benchmark, path, kind), "label": kind == POSITIVE, "kind": KINDS.index(kind)}
                for path, kind in kinds.items()
            ],
        }

    def _paths(self) -> Iterable[Row]:
        """Yield the rows of the weak paths, by either rule, and of the gold path."""
        candidates = [c for c in self.candidates if c.is_shortest or c.path in (*self.best, *self.gold)]
        reached = {c.path for c in candidates}
        candidates += [ScoredPath(path, 0.0, False) for path in self.gold if path not in reached]  # no answer
        columns = ("question_id", "question", "topic", "topics", "template", "hops")
        keys = {name: self.searched[name] for name in columns}
        for candidate in candidates:
            is_gold = candidate.path in self.gold
            yield {
                **keys,
                "path": list(candidate.path),
                "origin": int(is_gold),
                "f1": candidate.f1,
                "shortest": candidate.is_shortest,
                "best": candidate.path in self.best,
                "gold": is_gold if self.gold else None,
                # Whether equation 1 proposes a path with a lower F1 than another.
                "spurious": candidate.is_shortest and candidate.f1 < self.top_f1,
            }

    def _turns(self, benchmark: str, path: RelationPath, kind: str = "") -> Row:
        """Return the columns that all rows in conversational form share."""
        columns = {name: self.searched[name] for name in ("question_id", "topic", "hops")}
        return {
            "id": identity([benchmark, columns["question_id"], columns["topic"], path, kind])[:16],
            **columns,
            **conversation(self._request, completion_of(path)),
        }

    @cached_property
    def _request(self) -> Request:
        """The request that the deliberation loop would send."""
        return propose_request(self.searched["question"], self.searched["topic"])


SPLITS = (names.TRAIN, names.TEST)
GROUPINGS = ("", names.BY_TEMPLATE)
"""Suffixes of a config's name: split by question, or by template."""
RULES = ("shortest", "best_f1", "best")
"""Rules of weak labels: equation 1 of Deliberation on Priors; all paths of the best F1; the most frequent of these."""


def build(plan: PathsBuild, card: publishing.SingleCard) -> publishing.Record:
    """Build or replace ``OUTPUT/dp-BENCHMARK-paths``, resuming a killed build; raise ``UserError`` for bad input."""
    collected, reader = Collected(), relation_readers.reader_of(plan.benchmark)

    def make(folder: Path) -> tuple[publishing.Record, bytes]:
        inputs = [InputSource.describe(source) for source in plan.sources]
        graph = None if plan.kb is None else relation_readers.GraphFile.read(plan.kb)
        policy = RejectPolicy(plan.benchmark, plan.split, plan.keep_rejects)
        collect(plan, policy, partial(jobs, plan, graph), Searcher(), plan.sources, collected, "question")
        corpus, audit = _survey(plan, collected), Audit()
        files = _write(plan, collected, corpus, audit, folder)
        if not any(file.rows for file in files[names.PATHS].values()):
            raise UserError(
                f"{', '.join(plan.sources)}: not one question has a path of up to {plan.hops} relations to an answer; "
                "see whether answers and topics are named as in the graph, or raise --max-hops"
            )
        test_templates = len(corpus.held_out)
        options = ("version", "benchmark", "split", "limit", "seed", "test_share", "negatives")
        record = {
            **{name: getattr(plan, name) for name in options},
            "max_hops": plan.hops,
            "sources": inputs,
            "graph": None if graph is None else graph.description,
            "rows": collected.standing.finished,
            "rejected": collected.standing.failed,
            # Templates by split of the configs that are split by template, and how many gold paths there are.
            "templates": {"train": corpus.templates - test_templates, "test": test_templates},
            "gold_paths": len(audit.gold_paths),
            "hops": audit.by_hop(),
            "triples_left_out": audit.triples_left_out,
            "positive_share": audit.positive_share(),
            "neighbours": audit.adjacent_same_question,
            "files": files,
            **{name: getattr(reader, name.upper()) for name in ("license", "homepage", "citation", "caveat")},
            "prompt_sha256": prompt_digest(),
            "libraries": plans.libraries(),
            "code_sha256": code_digest(__name__, reader.parse.__module__),
            "simulated": False,
        }
        return record, (plan.work / names.REJECTS).read_bytes()

    dataset = publishing.Dataset(names.paths_set(plan.benchmark), names.PATHS_RECORD, config_features)
    return dataset.build(plan, card, lambda: f"{collected.standing.finished} questions searched", make)


@dataclass(frozen=True, slots=True)
class CorpusCounts:
    """Counts of the whole corpus, and the split of each question, by question or by template.

    The split by template is the fair test: by question, the nearest training question has Hits@1 .97. ``popular`` has
    how often each path is best, by grouping, over training questions only.
    """

    popular: Mapping[str, Mapping[RelationPath, float]]
    gold: Mapping[str, RelationPath]
    """Gold path of each template."""
    templates: int
    held_out: frozenset[str]
    """Templates in test."""

    def split_of(self, plan: PathsBuild, grouping: str, question: str, template: str) -> str:
        """Return the split of a question, by one of `GROUPINGS`; equal questions are in one split."""
        if grouping == names.BY_TEMPLATE:
            return names.TEST if template in self.held_out else names.TRAIN
        return _split_by_question(plan, question)


def _split_by_question(plan: PathsBuild, question: str) -> str:
    return names.TEST if _draw(plan.seed, question) < plan.test_share else names.TRAIN


class Audit:
    """Counts the labels of all questions, by their number of hops."""

    def __init__(self) -> None:
        self._counts: dict[int, Counter[str]] = defaultdict(Counter)
        self.triples_left_out = 0
        """Triples of the rows' own graphs with a blank name."""
        self.adjacent_same_question = 0
        """KTO rows of all configs that follow a row of the same question."""
        self.gold_paths = set[RelationPath]()

    def add(self, labelled: LabelledTopic, kinds: Mapping[RelationPath, str]) -> None:
        """Count one topic entity, the rules that find its gold path, and its KTO rows, whose ``kinds`` are by path."""
        counts, gold = self._counts[labelled.searched["hops"]], labelled.gold
        self.triples_left_out += labelled.searched["left_out"]
        best_f1 = [c.path for c in labelled.candidates if c.f1 == labelled.top_f1]
        shortest = [c.path for c in labelled.candidates if c.is_shortest]
        paths_by_rule = zip(RULES, (shortest, best_f1, labelled.best), strict=True)
        counts.update(["topics", *kinds.values()])
        counts["no path"] += not labelled.candidates
        self.gold_paths.update(gold)
        counts["gold"] += bool(gold)
        counts["exact"] += any(c.path in gold and c.f1 == 1 for c in labelled.candidates)
        counts["gold negatives"] += any(kinds.get(path, POSITIVE) != POSITIVE for path in gold)
        for rule, paths in paths_by_rule:
            counts[f"{rule} names"] += len(paths)
            if gold:
                counts[f"{rule} names beside gold"] += len(paths)
                counts[f"{rule} names gold"] += not set(gold).isdisjoint(paths)

    def by_hop(self) -> dict[str, dict[str, Any]]:
        """Return the counts by number of hops (0: unknown)."""
        return {str(hops): _make_hop_record(counts) for hops, counts in sorted(self._counts.items())}

    def positive_share(self) -> float | None:
        """Return the share of positive rows among the KTO rows (0-1)."""
        counts = sum(self._counts.values(), Counter[str]())
        return _divide(counts[POSITIVE], sum(counts[kind] for kind in KINDS))


def _make_hop_record(counts: Counter[str]) -> dict[str, Any]:
    return {
        # Topic entities of questions: all, those from which no path leads to an answer, those with a gold path.
        "topics": counts["topics"],
        "no_path": counts["no path"],
        "gold": counts["gold"],
        # Share whose gold path yields the answer set exactly.
        "gold_exact": _divide(counts["exact"], counts["gold"]),
        "rules": {
            rule: {
                # Share of the topic entities with a gold path for which the rule names it.
                "recall": _divide(counts[f"{rule} names gold"], counts["gold"]),
                # Of the paths named for topics with a gold path, the share that is gold.
                "precision": _divide(counts[f"{rule} names gold"], counts[f"{rule} names beside gold"]),
                # Mean number of named paths per topic.
                "paths": _divide(counts[f"{rule} names"], counts["topics"]),
            }
            for rule in RULES
        },
        # Rows by kind, and rows that call a gold path wrong.
        "kto": {kind: counts[kind] for kind in KINDS},
        "gold_negatives": counts["gold negatives"],
    }


def _divide(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None


def _read_shards(collected: Collected, title: str) -> Iterator[list[Row]]:
    """Yield the rows of each shard, one per topic entity, without questions whose id an earlier question has."""
    finished = 0
    with show_progress(title, "chunk", len(collected.shards), lambda: finished):
        for table in collected.tables():
            yield table.to_pylist()
            finished += 1


def _survey(plan: PathsBuild, collected: Collected) -> CorpusCounts:
    """Count the whole corpus, and draw the test templates."""
    templates, hops = weak.Templates(), dict[str, int]()
    ties: Counter[tuple[str, bool, tuple[RelationPath, ...]]] = Counter()
    for rows in _read_shards(collected, "survey"):
        for row in rows:
            name, candidates = row["template"], candidates_of(row)
            hops.setdefault(name, row["hops"])
            templates.add(name, 0 if row["gold"] else row["hops"], [(c.path, c.f1) for c in candidates])
            in_train = _split_by_question(plan, row["question"]) == names.TRAIN
            ties[name, in_train, tuple(c.path for c in candidates if c.is_best)] += 1
    in_test = held_out(templates.sizes, hops, plan.test_share, plan.seed)
    popular = {
        "": weak.popularity((tied, n) for (_, in_train, tied), n in ties.items() if in_train),
        names.BY_TEMPLATE: weak.popularity((tied, n) for (name, _, tied), n in ties.items() if name not in in_test),
    }
    return CorpusCounts(popular, templates.gold(), len(templates.sizes), in_test)


def _write(
    plan: PathsBuild, collected: Collected, corpus: CorpusCounts, audit: Audit, folder: Path
) -> parquet.FilesByConfig:
    """Write the Parquet files; ``audit`` counts each topic entity once, and the KTO rows of each config."""
    splits = [(config + grouping, split) for config in CONFIGS for grouping in GROUPINGS for split in SPLITS]
    writer = parquet.DatasetWriter(folder, splits, config_features)
    for shard_rows in _read_shards(collected, "rows"):
        for grouping in GROUPINGS:
            rows_by_split: dict[tuple[str, str], list[Row]] = {}
            for row in shard_rows:
                labelled = LabelledTopic.read(row, corpus.popular[grouping], corpus.gold)
                kinds = labelled.kinds_by_path(plan.negatives, f"{plan.seed}\0{row['question_id']}\0{row['topic']}")
                if grouping == "":
                    audit.add(labelled, kinds)
                split = corpus.split_of(plan, grouping, row["question"], row["template"])
                for config, rows in labelled.rows(plan.benchmark, kinds).items():
                    rows_by_split.setdefault((config, split), []).extend(rows)
            for (config, split), rows in rows_by_split.items():
                if config == names.KTO:
                    rows = parquet.interleave(rows, plan.seed, itemgetter("question_id"))
                    ids = [row["question_id"] for row in rows]
                    audit.adjacent_same_question += sum(id_ == previous for previous, id_ in pairwise(ids))
                writer.add(config + grouping, split, rows)
    return writer.close()


def held_out(sizes: Mapping[str, int], hops: Mapping[str, int], share: float, seed: int) -> frozenset[str]:
    """Draw templates for test, as they fit, up to ``share`` (0-1) of the questions of each number of hops."""
    by_hops: dict[int, list[str]] = defaultdict(list)
    for name in sizes:
        by_hops[hops[name]].append(name)
    chosen: set[str] = set()
    for ids in by_hops.values():
        room = round(share * sum(sizes[name] for name in ids))
        for name in sorted(ids, key=lambda name: (_draw(seed, name), name)):
            if sizes[name] <= room:
                chosen.add(name)
                room -= sizes[name]
    return frozenset(chosen)


def _draw(seed: int, text: str) -> float:
    """Return a random number in [0, 1) that depends only on the seed and the text."""
    content = f"{seed}\0{text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=6).digest()) / 2**48


def summary(plan: PathsBuild, statistics: publishing.Record) -> str:
    """Render the counts of a build, its folder, and how to load the dataset, for the terminal."""
    figure = partial(tables.format_cell, form=tables.decimal(3), missing="-")
    lines: list[tuple[object, ...]] = [("hops", "topics", "no path", "rule", "recall", "precision", "paths each")]
    for hops, audit in statistics["hops"].items():
        for name, rule in audit["rules"].items():
            lines.append((hops, audit["topics"], audit["no_path"], name, *map(figure, rule.values())))
    return tables.fill(
        Path(__file__).parent / "templates",
        "relations.txt",
        plan=plan,
        statistics=statistics,
        lines=lines,
        positive=figure(statistics["positive_share"]),
        place=plan.output / names.paths_set(plan.benchmark),
        config=f"{names.PROMPT_COMPLETION}{names.BY_TEMPLATE}",
    ).rstrip()
