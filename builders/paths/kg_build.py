"""From questions over a knowledge graph to a set of relation paths, ``dp-BENCHMARK-paths``.

Questions are searched chunk by chunk into ``OUTPUT/.work/paths-BENCHMARK``. Then the shards are gone through twice:
for what only the whole corpus tells (how often a path is best, gold paths by template), and to write the rows, beside
the work; all is swapped in whole.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

from builders.benchmarks.sources import InputSource
from builders.paths.kg_collect import PathsBuild, collect
from builders.paths.relation_inputs import graph_of
from builders.paths.relation_readers import reader_of
from builders.paths.relation_rows import CONFIGS, Labelled, Row, candidates_of, config_features
from builders.paths.relation_splits import SPLITS, WAYS, Splits, held_out
from builders.paths.relation_statistics import Audit, PathStatistics
from builders.paths.weak import Templates, popularity
from builders.work import publishing
from builders.work.collect import Collected
from builders.work.dealing import dealt
from builders.work.parquet import DatasetWriter, Files
from builders.work.plans import libraries
from safe_stepwise.methods.path_proposing import prompt_digest
from safe_stepwise.records import RelationPath
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.names import BY_TEMPLATE, KTO, PATHS_RECORD, REJECTS, TRAIN, paths_set
from safe_stepwise.store.progress import counts, telling


def build(plan: PathsBuild, card: publishing.CardOfOne) -> PathStatistics:
    """Build ``OUTPUT/dp-BENCHMARK-paths`` (again, if it is there).

    Killed at any instant, the same call resumes, and ends in the same bytes, for any number of workers and any engine.

    Raises ``UserError`` for what the user can mend: folders, sources, rows (unless ``keep_rejects``), a full disk.
    """
    collected, reader = Collected(), reader_of(plan.benchmark)

    def make(folder: Path) -> tuple[PathStatistics, bytes]:
        inputs = [InputSource.of(source) for source in plan.sources]
        graph, about = (None, None) if plan.kb is None else graph_of(plan.kb, plan.work)
        collect(plan, graph, collected)
        corpus, audit = _survey(plan, collected), Audit()
        files = _write(plan, collected, corpus, audit, folder)
        held = len(corpus.splits.templates)
        statistics = PathStatistics(
            version=plan.version,
            benchmark=plan.benchmark,
            split=plan.split,
            sources=inputs,
            graph=about,
            limit=plan.limit,
            seed=plan.seed,
            test_share=plan.test_share,
            max_hops=plan.max_hops,
            negatives=plan.negatives,
            rows=collected.standing.done,
            rejected=collected.standing.failed,
            templates={"train": corpus.templates - held, "test": held},
            gold_paths=len(set(corpus.gold.values())),
            hops=audit.by_hop(),
            positive_share=audit.positive_share(),
            neighbours=audit.neighbours,
            files=files,
            license=reader.LICENSE,
            homepage=reader.HOMEPAGE,
            citation=reader.CITATION,
            caveat=reader.CAVEAT,
            prompt_sha256=prompt_digest(),
            libraries=libraries(),
            code_sha256=code_digest(__name__, reader.parse.__module__),
        )
        return statistics, (plan.work / REJECTS).read_bytes()

    dataset = publishing.Dataset(paths_set(plan.benchmark), PATHS_RECORD, config_features, kind=PathStatistics)
    return dataset.build(plan, card, lambda: f"{collected.standing.done} questions searched", make)


@dataclass(frozen=True, slots=True)
class Corpus:
    """What only all questions together tell.

    ``popular`` is how often a path is best, by way of splitting: of its questions of train alone, so that no label
    there knows of a question of test.
    """

    popular: Mapping[str, Mapping[RelationPath, float]]
    gold: Mapping[str, RelationPath]
    """By template."""
    splits: Splits
    templates: int


def _searched(collected: Collected, title: str) -> Iterator[list[Row]]:
    """The topic entities of each shard, without those of questions whose id was there before."""
    gone, total = 0, len(collected.shards)
    with telling(title, "chunk", total, lambda: gone, lambda: counts(gone, 0, total - gone)):
        for table in collected.tables():
            yield table.to_pylist()
            gone += 1


def _survey(plan: PathsBuild, collected: Collected) -> Corpus:
    templates, hops = Templates(), dict[str, int]()
    ties: Counter[tuple[str, bool, tuple[RelationPath, ...]]] = Counter()
    by_question = Splits(plan.seed, plan.test_share, frozenset())
    for rows in _searched(collected, "survey"):
        for row in rows:
            name, candidates = row["template"], candidates_of(row)
            hops.setdefault(name, row["hops"])
            templates.add(name, row["hops"], [(c.path, c.f1) for c in candidates])
            is_learnt = by_question.of("", row["question"], name) == TRAIN
            ties[name, is_learnt, tuple(c.path for c in candidates if c.tied)] += 1
    out = held_out(templates.sizes, hops, plan.test_share, plan.seed)
    popular = {
        "": popularity((tied, n) for (_, is_learnt, tied), n in ties.items() if is_learnt),
        BY_TEMPLATE: popularity((tied, n) for (name, _, tied), n in ties.items() if name not in out),
    }
    return Corpus(popular, templates.gold(), Splits(plan.seed, plan.test_share, out), len(templates.sizes))


def _write(plan: PathsBuild, collected: Collected, corpus: Corpus, audit: Audit, folder: Path) -> Files:
    """Write the Parquet files of all configs; ``audit`` counts the topic entities split by question."""
    places = [(config + way, split) for config in CONFIGS for way in WAYS for split in SPLITS]
    writer = DatasetWriter(folder, places, config_features)
    for searched in _searched(collected, "rows"):
        for way in WAYS:
            made: dict[tuple[str, str], list[Row]] = {}
            for row in searched:
                topic = Labelled.of(row, corpus.popular[way], corpus.gold)
                judged = topic.judged(plan.negatives, f"{plan.seed}\0{row['question_id']}\0{row['topic']}")
                if way == "":
                    audit.add(topic, judged)
                split = corpus.splits.of(way, row["question"], row["template"])
                for config, rows in topic.rows(plan.benchmark, judged).items():
                    made.setdefault((config, split), []).extend(rows)
            for (config, split), rows in made.items():
                if config == KTO:
                    rows = dealt(rows, plan.seed, itemgetter("question_id"))
                    ids = [row["question_id"] for row in rows]
                    audit.neighbours += sum(id_ == previous for previous, id_ in pairwise(ids))
                writer.add(config + way, split, rows)
    return writer.close()
