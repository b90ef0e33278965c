"""The files of a model's folder, and what they are known by."""

import hashlib
from pathlib import Path

SMALL = ("*.json", "*.jinja", "*.txt", "*.model")
"""Configuration and tokenizer; with them the revision is known before gigabytes are fetched."""
_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
_WHOLE = 1 << 20


def digest(folder: Path) -> str:
    """SHA-256 over the names and contents of a model's files, in seconds even for 100 GB.

    Of a weight file of more than two MiB only its size and its first and last MiB are read: the
    header with every tensor's name and shape, and values that any training changes.
    """
    whole = hashlib.sha256()
    files = [path for pattern in (*SMALL, *_WEIGHTS) for path in folder.glob(pattern)]
    for path in sorted(files):
        content = hashlib.sha256()
        size = path.stat().st_size
        with path.open("rb") as file:
            if f"*{path.suffix}" in SMALL or size <= 2 * _WHOLE:
                content.update(file.read())
            else:
                content.update(file.read(_WHOLE))
                file.seek(-_WHOLE, 2)
                content.update(file.read())
        whole.update(f"{path.name}\0{size}\0{content.hexdigest()}\n".encode())
    return whole.hexdigest()
