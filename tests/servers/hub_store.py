"""What a local Hub keeps: repos of commits, refs and blobs; all in memory."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from typing import Any

LFS_SUFFIXES = (".parquet", ".safetensors", ".png", ".bin", ".gguf", ".arrow")
DATE = "2026-01-01T00:00:00.000Z"


@dataclass(frozen=True)
class Blob:
    """One file's content, and how it was committed."""

    content: bytes
    lfs: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def oid(self) -> str:
        """Git's own: of the content, or of the pointer that stands for it."""
        content = self.content
        if self.lfs:
            size = len(content)
            content = (f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {size}\n").encode()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.oid

    def entry(self, path: str) -> dict[str, Any]:
        """As ``tree`` and ``paths-info`` list it."""
        listed: dict[str, Any] = {"type": "file", "path": path, "size": len(self.content)}
        listed["oid"] = self.oid
        if self.lfs:
            listed["lfs"] = {"oid": self.sha256, "size": len(self.content), "pointerSize": 130}
        return listed


@dataclass(frozen=True)
class Commit:
    """A whole tree, its message and its parent."""

    oid: str
    parent: str | None
    title: str
    message: str
    files: dict[str, Blob]


@dataclass
class Repo:
    """A model, dataset or Space; born with one commit, as on the Hub."""

    kind: str
    id: str
    private: bool = False
    sdk: str | None = None
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        attributes = "".join(f"*{s} filter=lfs diff=lfs merge=lfs -text\n" for s in LFS_SUFFIXES)
        self.branches["main"] = ""
        self.add("main", "initial commit", "", {".gitattributes": Blob(attributes.encode(), False)})

    def find(self, revision: str) -> Commit | None:
        """A commit by branch, tag or id (whole, or its first seven letters at least)."""
        oid = self.branches.get(revision) or self.tags.get(revision) or revision
        found = [c for c in self.commits if c.startswith(oid)] if len(oid) >= 7 else []
        return self.commits[found[0]] if len(found) == 1 else None

    def add(self, branch: str, title: str, message: str, files: dict[str, Blob]) -> Commit:
        """A commit of this whole tree on a branch."""
        parent = self.branches[branch] or None
        told = repr((self.kind, self.id, parent, title, sorted((p, b.oid) for p, b in files.items())))
        oid = hashlib.sha1(f"{len(self.commits)} {told}".encode()).hexdigest()
        self.commits[oid] = Commit(oid, parent, title, message, files)
        self.branches[branch] = oid
        return self.commits[oid]

    def history(self, commit: Commit | None) -> list[Commit]:
        """From a commit back to the first."""
        chain = []
        while commit is not None:
            chain.append(commit)
            commit = self.commits.get(commit.parent or "")
        return chain

    @property
    def head(self) -> Commit:
        return self.commits[self.branches["main"]]


@dataclass
class Store:
    """Everything on the Hub."""

    repos: dict[tuple[str, str], Repo] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    """Large files by SHA-256."""

    def apply(self, files: dict[str, Blob], key: str, value: dict[str, Any]) -> dict[str, Blob]:
        """A tree after one line of a commit; ``KeyError`` for a file or object that isn't there."""
        path = value["path"]
        if key == "file":
            return {**files, path: Blob(base64.b64decode(value["content"]), False)}
        if key == "lfsFile":
            return {**files, path: Blob(self.objects[value["oid"]], True)}
        if key == "deletedFile":
            del (left := dict(files))[path]
            return left
        if key == "deletedFolder":
            return {p: b for p, b in files.items() if not p.startswith(path.rstrip("/") + "/")}
        raise KeyError(key)


def tree(files: dict[str, Blob], below: str, recursive: bool) -> list[dict[str, Any]]:
    """Files and folders below a folder, as the Hub lists them."""
    prefix = f"{below}/" if below else ""
    entries: dict[str, dict[str, Any]] = {}
    for path, blob in sorted(files.items()):
        if not path.startswith(prefix):
            continue
        parts = path[len(prefix) :].split("/")
        for depth in range(1, len(parts)):
            folder = prefix + "/".join(parts[:depth])
            if recursive or depth == 1:
                oid = hashlib.sha1(folder.encode()).hexdigest()
                entries[folder] = {"type": "directory", "path": folder, "size": 0, "oid": oid}
        if recursive or len(parts) == 1:
            entries[path] = blob.entry(path)
    return list(entries.values())
