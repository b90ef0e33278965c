"""The ``dataset_info`` block of a README, from the files that were written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any


def dataset_info(
    configs: Mapping[str, Iterable[Mapping[str, Any]]], features: Callable[[str], Any]
) -> list[dict[str, Any]]:
    """An entry for every config that has rows: features and sizes of its splits.

    ``configs`` gives each config's splits (records of `SplitFiles`); ``features`` the
    `datasets.Features` of a config by name.
    """
    from datasets import DatasetInfo, SplitDict, SplitInfo
    from datasets.info import DatasetInfosDict
    from huggingface_hub import DatasetCardData

    infos = DatasetInfosDict()
    for config, splits in configs.items():
        parts = [part for part in splits if part["rows"]]
        if not parts:
            continue
        sizes = {p["split"]: SplitInfo(p["split"], p["arrow_bytes"], p["rows"]) for p in parts}
        infos[config] = DatasetInfo(
            config_name=config,
            features=features(config),
            splits=SplitDict(sizes),
            download_size=sum(part["bytes"] for part in parts),
            dataset_size=sum(part["arrow_bytes"] for part in parts),
        )
    data = DatasetCardData()
    infos.to_dataset_card_data(data)
    entries = data.get("dataset_info") or []
    return [dict(e) for e in (entries if isinstance(entries, list) else [entries])]
