"""The papers' numbers tally with each other, but where the file says that they do not."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from safe_stepwise.store import published_tables
from safe_stepwise.store.published_tables import AVERAGE, BENCHMARKS, EVERY, MAIN, PublishedScore, published

Place = tuple[str, str, str, str, str]
HALF = 0.0501
"""Of the last digit that is printed."""
OFF = {
    ("v1", "3", "all", "no_verification", "em"): 48.9,
    ("v2", "2", "all", "no_verification", "em"): 48.9,
    ("v2", "2", "Llama 3.1 8B", "safe", "f1"): 74.3,
    ("v1", "12", "all", "synthetic only", "acc"): 82.8,
}
"""Averages in print that are no means of what is printed beside them; `contradictions` has each."""


def place(row: PublishedScore, metric: str) -> Place:
    return row.paper, row.table, row.generator, row.variant or row.method, metric


def averages() -> Iterable[tuple[Place, float, float]]:
    """Each average with the mean of what it is an average of."""
    for row in published().scores:
        if all(name in row.scores for name in (*BENCHMARKS, AVERAGE)):
            for metric, printed in row.scores[AVERAGE].items():
                mean = sum(row.scores[name][metric] for name in BENCHMARKS) / 3
                yield place(row, metric), printed, mean


def test_averages_are_means_of_what_is_printed() -> None:
    found = {at: printed for at, printed, mean in averages() if abs(printed - mean) > HALF}
    assert {**totals(), **found} == OFF


def totals() -> dict[Place, float]:
    """Averages of all generators that are not their mean."""
    groups: dict[tuple[str, str, str, str], list[PublishedScore]] = defaultdict(list)
    for row in published().scores:
        if row.method not in ("ircot", "trace"):
            groups[row.paper, row.table, row.method, row.variant].append(row)
    off = {}
    for rows in groups.values():
        ones = [row for row in rows if row.generator != EVERY]
        for whole in (row for row in rows if row.generator == EVERY):
            for name, cells in whole.scores.items():
                for metric, printed in cells.items():
                    known = [row.scores[name][metric] for row in ones if name in row.scores]
                    if known and abs(sum(known) / len(known) - printed) > HALF:
                        off[place(whole, metric)] = printed
    return off


def test_every_row_is_there() -> None:
    sizes: dict[tuple[str, str], int] = defaultdict(int)
    for row in published().scores:
        sizes[row.paper, row.table] += 1
    assert sizes == {
        ("v1", "3"): 20, ("v1", "4"): 12, ("v1", "12"): 12,
        ("v2", "2"): 20, ("v2", "3"): 9, ("v2", "4"): 12, ("v2", "5"): 12,
        ("v2", "6"): 12, ("v2", "7"): 6, ("v2", "8"): 8, ("v2", "17"): 12,
        ("sg_fsm", "2"): 10, ("sg_fsm", "3"): 10,
    }  # fmt: skip
    assert len({(*place(row, ""), row.method) for row in published().scores}) == sum(sizes.values())


@pytest.mark.parametrize(("paper", "delta"), [("v1", 8.4), ("v2", 8.8)])
def test_the_headline_is_the_papers(paper: str, delta: float) -> None:
    main = [row for row in published().scores if (row.paper, row.table) == (paper, MAIN[paper])]  # type: ignore[index]
    whole = {row.method: row for row in main if row.generator == EVERY}
    assert whole["safe"].delta == {AVERAGE: delta}
    better = max(whole[m].scores[AVERAGE]["acc"] for m in ("no_verification", "self_verification"))
    assert whole["safe"].scores[AVERAGE]["acc"] - better == pytest.approx(delta, abs=0.11)
    assert {row.generator for row in main if row.method == "trace"} == {"Llama 3 8B"}
    assert all("acc" not in row.scores[AVERAGE] for row in main if row.method == "trace")


def test_noise_is_a_share_of_the_questions() -> None:
    assert [n["ratio_percent"] for n in published().noise_ratios[:6]] == [4.45, 7.16, 2.63, 3.09, 10.8, 14.18]
    for noise in published().noise_ratios:
        assert 100 * noise["noisy"] / noise["questions"] == pytest.approx(noise["ratio_percent"], abs=0.005)


def test_tokens_add_up() -> None:
    for paper in ("v1", "v2"):
        found = {t["role"]: t for t in published().tokens if t["paper"] == paper}
        for row in found.values():
            summed = row["cached_millions"] + row["computed_millions"]
            assert summed == pytest.approx(row["total_millions"])
            share = 100 * row["cached_millions"] / row["total_millions"]
            assert share == pytest.approx(row["cached_percent"], abs=0.1)
        for name in ("total_millions", "cached_millions", "computed_millions"):
            one, other, both = (found[r][name] for r in ("generator", "verifier", "overall"))
            assert one + other == pytest.approx(both)


def test_contradictions_name_tables_that_are_there() -> None:
    known = {(row.paper, row.table) for row in published().scores}
    known |= {(row["paper"], row["table"]) for row in (*published().noise_ratios, *published().tokens)}
    content = yaml.safe_load(Path(published_tables.__file__).with_suffix(".yaml").read_text())
    told = {(c["paper"], table) for c in content["contradictions"] for table in c["tables"] if table != "A.8"}
    assert all(c["description"] for c in content["contradictions"])
    assert told <= known
    assert {(paper, table) for paper, table, *_ in OFF} <= told
    assert {f["percent"] for f in published().failures} == {64.1, 59.0}
