"""What constraining a proposed path to a graph costs a question: hop by hop, beside a list of all paths, as a ratio.

    python -m tests.benchmarks.bench_paths                       # 4,000 triples, four hops
    python -m tests.benchmarks.bench_paths --tokenizer MODEL/tokenizer.json

A question is a topic entity and a path that leads somewhere. Counted are the search for paths, the requests, and the
trees of tokens that the engine of Transformers makes of their choices, not the model. Seconds are those of this
process's work. Without a tokenizer, tokens are words and punctuation.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from safe_stepwise.engines.transformers import Trie
from safe_stepwise.graphs import graph_store
from safe_stepwise.graphs.graph_store import GraphStore, NamedTriple
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.methods.path_proposing import propose_request
from safe_stepwise.records import RelationPath
from safe_stepwise.store.tables import text_table
from scripts.cli import run
from tests.benchmarks.command_line import Parser, positive

Encode = Callable[[str], Sequence[int]]
HOPS = 4


def triples(number: int) -> list[NamedTriple]:
    """A graph about a topic: 13 triples to an entity, so that each relation path has some dozen continuations."""
    draw = random.Random(7)
    names = [f"entity {n}" for n in range(max(2, number // 13))]
    return [(draw.choice(names), f"domain.type.{draw.randrange(60)}", draw.choice(names)) for _ in range(number)]


def asked(graph: GraphStore, number: int) -> list[tuple[str, RelationPath]]:
    """Topics with a path of four relations each that leads somewhere."""
    draw = random.Random(5)
    found: list[tuple[str, RelationPath]] = []
    for topic in (f"entity {n}" for n in range(10**6)):
        path, nodes = list[str](), {*graph.nodes([topic])}
        while len(path) < HOPS and (steps := graph.steps(nodes)):
            path.append(draw.choice(sorted(steps)))
            nodes = steps[path[-1]].difference(graph.nodes([topic]))
        if len(path) == HOPS and nodes:
            found.append((topic, tuple(path)))
        if len(found) == number:
            break
    return found


def choose(topic: str, paths: Sequence[RelationPath], encode: Encode) -> int:
    """Request a choice among the paths and make its tree of tokens; return their number."""
    choices = propose_request("what is it", topic, paths).choices
    Trie(map(encode, choices))
    return len(choices)


def by_hops(graph: GraphStore, topic: str, path: RelationPath, encode: Encode) -> int:
    """Choose a path as a proposer does, hop by hop; return the number of choices listed."""
    knowledge, listed, prefix = GraphKnowledge(graph, hops=HOPS), 0, RelationPath(())
    while len(choices := knowledge.list_paths(topic, prefix)) > 1:
        listed += choose(topic, choices, encode)
        prefix = path[: len(choices[-1])]
    return listed


def at_once(graph: GraphStore, topic: str, path: RelationPath, encode: Encode) -> int:
    """Choose among all paths; return their number."""
    del path
    paths = graph_store.search_paths(graph, topic, HOPS)
    return choose(topic, sorted(paths, key=lambda path: (len(path), path)), encode)


def main(arguments: Sequence[str]) -> None:
    parser = Parser(prog="python -m tests.benchmarks.bench_paths", description=__doc__)
    parser.add_argument("size", nargs="?", type=positive, default=4_000, help="triples of the graph")
    parser.add_argument("--questions", type=positive, default=10)
    parser.add_argument("--tokenizer", type=Path)
    options = parser.parse_args(arguments)
    graph_store.MAX_PATHS = 10**9  # all paths, however many
    numbers: dict[str, int] = {}
    encode: Encode = lambda text: [numbers.setdefault(w, len(numbers)) for w in re.findall(r"\w+|[^\w\s]+", text)]  # noqa: E731
    if options.tokenizer:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(options.tokenizer))
        encode = lambda text: tokenizer.encode(text, add_special_tokens=False).ids  # noqa: E731
    graph = GraphStore(triples(options.size))
    questions, seconds, listed = asked(graph, options.questions), dict[str, list[float]](), dict[str, list[int]]()
    for way in (by_hops, at_once):
        for topic, path in questions:
            start = time.process_time()
            listed.setdefault(way.__name__, []).append(way(graph, topic, path, encode))
            seconds.setdefault(way.__name__, []).append(time.process_time() - start)
    base = mean(seconds["at_once"])
    rows = [
        (
            name,
            f"{mean(listed[name]):,.0f}",
            f"{1000 * mean(s):,.1f}",
            f"{1000 * max(s):,.1f}",
            f"{mean(s) / base:.4f}",
        )
        for name, s in seconds.items()
    ]
    print(text_table([("way", "choices", "ms a question", "slowest", "x all at once"), *rows]))


if __name__ == "__main__":
    run(main)
