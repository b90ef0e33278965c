"""How long a large graph takes: to build, and to walk three hops; beside other stores as ratios.

    python -m tests.benchmarks.bench_graph                       # 8M triples into SQLite
    python -m tests.benchmarks.bench_graph 200000 --beside       # and the others that are installed

Triples are made up in Freebase's proportions: three entities to ten triples, relations and heads
as uneven as there, and a tenth of the tails among a thousand hubs (countries, professions). Paths
are drawn from topics like most, and from hubs by whatever leads to most entities: the worst that
there is. Seconds are those of this process's work; on an idle machine the clock says no more.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from typing import Any

from safe_stepwise.graphs.sqlite_store import SqliteGraph, build_sqlite
from safe_stepwise.graphs.store import GraphStore, MemoryGraph, NamedTriple
from safe_stepwise.records import RelationPath
from safe_stepwise.store.tables import text_table
from scripts.cli import run
from tests.benchmarks.command_line import Parser, positive
from tests.makers.films import execute

SIZE = 8_000_000
QUESTIONS = 300
RELATIONS = 700
HUBS = 1_000
HEADER = ("store", "build s", "clock s", "MB on disk", "ms a question", "from hubs", "slowest", "build x", "walk x")
Asked = list[tuple[str, RelationPath]]
Walk = Callable[[str, RelationPath], object]


def triples(number: int) -> Iterator[NamedTriple]:
    """Always the same ones."""
    draw = random.Random(7).random
    entities = max(2, number * 3 // 10)
    for place in range(number):
        head, tail = int(draw() * draw() * entities), int(draw() * entities)
        end = f"entity {tail}" if place % 10 else f"hub {int(HUBS * draw() ** 3)}"
        yield f"entity {head}", f"domain.type.{int(RELATIONS * draw() ** 3)}", end


def asked(graph: GraphStore, number: int) -> Asked:
    """Topics and paths of three relations, each of which leads somewhere."""
    draw = random.Random(3)
    found: Asked = []
    while len(found) < QUESTIONS:
        topic, path = f"entity {int(draw.random() * draw.random() * number * 3 / 10)}", list[str]()
        nodes = {node for node in [graph.node(topic)] if node is not None}
        while len(path) < 3 and (steps := graph.steps(nodes)):
            path.append(draw.choice(sorted(steps)))
            nodes = steps[path[-1]]
        if len(path) == 3:
            found.append((topic, tuple(path)))
    return found


def asked_of_hubs(graph: GraphStore) -> Asked:
    """Of every tenth hub the path that leads to most entities at each hop."""
    found: Asked = []
    for hub in range(0, HUBS, 10):
        topic, path = f"hub {hub}", list[str]()
        nodes = {node for node in [graph.node(topic)] if node is not None}
        while len(path) < 3 and (steps := graph.steps(nodes)):
            path.append(max(sorted(steps), key=lambda name: len(steps[name])))
            nodes = steps[path[-1]]
        found.append((topic, tuple(path)))
    return found


def timed(walk: Walk, questions: Asked) -> tuple[float, float]:
    """Milliseconds a question, and those of the slowest."""
    spent = []
    for topic, path in questions:
        started = time.process_time()
        walk(topic, path)
        spent.append(1e3 * (time.process_time() - started))
    return mean(spent), max(spent)


def sqlite(number: int, folder: Path) -> Walk:
    build_sqlite(folder / "graph.sqlite", triples(number))
    graph = SqliteGraph(folder / "graph.sqlite")
    return lambda topic, path: execute(graph, topic, path)


def memory(number: int, folder: Path) -> Walk:
    graph = MemoryGraph(triples(number))
    return lambda topic, path: execute(graph, topic, path)


def networkx(number: int, folder: Path) -> Walk:
    import networkx as nx

    graph: Any = nx.MultiDiGraph()
    graph.add_edges_from((head, tail, relation) for head, relation, tail in triples(number))

    def walk(topic: str, path: RelationPath) -> object:
        nodes = {topic}
        for said in path:
            ends, name = (graph.pred, said[1:]) if said[0] == "~" else (graph.succ, said)
            nodes = {end for n in nodes for end, keys in ends[n].items() if name in keys} - {topic}
        return nodes

    return walk


def duckdb(number: int, folder: Path) -> Walk:
    import duckdb as duck

    database: Any = duck.connect(str(folder / "graph.duckdb"))
    file = folder / "kb.txt"
    file.write_text("".join("|".join(triple) + "\n" for triple in triples(number)))
    said = "columns = {'h': 'VARCHAR', 'r': 'VARCHAR', 't': 'VARCHAR'}, delim = '|', header = false"
    database.execute(f"CREATE TABLE kb AS SELECT * FROM read_csv('{file}', {said})")
    file.unlink()

    def walk(topic: str, path: RelationPath) -> object:
        nodes = {topic}
        for said in path:
            here, there, name = ("t", "h", said[1:]) if said[0] == "~" else ("h", "t", said)
            query = f"SELECT DISTINCT {there} FROM kb WHERE r = ? AND {here} IN (SELECT unnest(?))"
            nodes = {end for (end,) in database.execute(query, [name, list(nodes)]).fetchall()}
            nodes.discard(topic)
        return nodes

    return walk


STORES = {"sqlite": sqlite, "memory": memory, "networkx": networkx, "duckdb": duckdb}


def main(arguments: Sequence[str]) -> None:
    """Print a line a store; the ratios are to the first, ours."""
    parser = Parser(
        prog="python -m tests.benchmarks.bench_graph",
        description=__doc__.splitlines()[0],
        epilog=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("triples", nargs="?", type=positive, default=SIZE)
    parser.add_argument("--beside", action="store_true", help="the other stores, too, in memory")
    options = parser.parse_args(arguments)
    lines: list[tuple[object, ...]] = [HEADER]
    made = time.process_time()
    for _ in triples(options.triples):
        pass
    made = time.process_time() - made
    questions: Asked = []
    hubs: Asked = []
    for name, build in list(STORES.items())[: None if options.beside else 1]:
        if name in ("networkx", "duckdb") and find_spec(name) is None:
            print(f"{name} is not installed: left out", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="bench-graph-") as folder:
            started, clock = time.process_time(), time.perf_counter()
            walk = build(options.triples, Path(folder))
            spent = time.process_time() - started - made
            clock = time.perf_counter() - clock - made
            size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
            if name == "sqlite":
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
                graph = SqliteGraph(Path(folder, "graph.sqlite"))
                questions, hubs = asked(graph, options.triples), asked_of_hubs(graph)
            each, _ = timed(walk, questions)
            of_hubs, slowest = timed(walk, hubs)
        ours: Any = lines[1] if len(lines) > 1 else (name, spent, clock, size, each)
        figures = (spent, clock, size, each, of_hubs, slowest, spent / ours[1], each / ours[4])
        lines.append((name, *(round(figure, 3) for figure in figures)))
        print(text_table(lines), flush=True)
    print(f"{options.triples:,} triples, which took {made:.1f} s to make up (not counted)")
    print(f"peak memory once ours was built: {peak:,.0f} MB")


if __name__ == "__main__":
    run(main)
