"""The sources of relation paths as they are here, for a dry run."""

from collections import Counter
from dataclasses import dataclass

from releases.paths_manifest import PathsManifest
from releases.stage import Forecast, Release
from safe_stepwise.errors import UserError


@dataclass(frozen=True, slots=True)
class SourceRows:
    """A source as it is here: its digest and rows (None of a graph), or nothing of it.

    Of questions that are put also how many there are of each number of hops, and the most topic
    entities of one.
    """

    sha256: str | None = None
    rows: int | None = None
    by_hops: Counter[int] | None = None
    topics: int = 1


def question_rows(release: Release[PathsManifest], forecast: Forecast, part: str) -> dict[str, int]:
    """The rows of a part's questions by source; raises ``UserError`` where they are not known."""
    rows = {}
    for key, source in forecast.sources.items():
        if key.startswith(f"{part}.questions"):
            entry = release.manifest.sources[key]
            if (number := entry.expected_rows if source.rows is None else source.rows) is None:
                raise UserError(
                    f"{release.file}: {key}: {entry.input} is not here; bring it, or say how many "
                    "rows it has with expected_rows"
                )
            rows[key] = number
    return rows
