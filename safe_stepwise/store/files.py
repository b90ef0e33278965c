"""Writes files and folders so that they never exist in part, and computes their digests.

While a file NAME is written, its content is in the hidden *partial file* ``.NAME.half`` in the same folder, which the
writer locks. Two writers of the same file take turns. A partial file without a lock was left by a killed run
(`sweep`).
"""

import errno
import fcntl
import gzip
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

from safe_stepwise.errors import UserError
from safe_stepwise.store.opening import open_file, special_kind

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

T = TypeVar("T")
PARTIAL_SUFFIX = ".half"
_BLOCK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 (64 hex digits) of a file's content, which need not fit into memory."""
    with open_file(path) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@contextmanager
def open_unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, through gzip if its first bytes say so, whatever its name.

    Raises ``OSError``; reading a damaged file also raises ``EOFError`` and ``zlib.error``.
    """
    with open_file(path) as file:
        is_packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        file.seek(0)
        if not is_packed:
            yield file
            return
        with gzip.open(file) as stream:
            yield cast(BinaryIO, stream)


MAX_LINE_BYTES = 1 << 26
"""Maximum size of a line, 64 MiB; the longest trajectory has a hundredth of it."""


def read_lines(
    file: Path, read: Callable[[bytes], T], noun: str, mend: str, *, blanks: bool = False
) -> Iterator[tuple[str, T]]:
    """Yield the name ("FILE, line 3") and the parsed content of each line of a file, which may be gzipped.

    ``read`` parses a line; it raises ``ValueError`` for a line that is not a ``noun``. With ``blanks``, blank lines
    are allowed and skipped. Raises ``UserError`` for a file or line that can't be read; its message ends with
    ``mend``, which says how to fix it.
    """
    try:
        with open_unpacked(file) as lines:
            for number, line in enumerate(iter(lambda: lines.readline(MAX_LINE_BYTES + 1), b""), 1):
                place = f"{file}, line {number}"
                if len(line) > MAX_LINE_BYTES:
                    raise UserError(f"{place}: has more than {MAX_LINE_BYTES:,} bytes; {mend}")
                if not (blanks and not line.strip()):
                    with explain_line(f"{place}: is no {noun}", mend):
                        content = read(line)
                    yield place, content
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{file}: cannot be read ({reason}); {mend}") from None


@contextmanager
def explain_line(fault: str, mend: str) -> Iterator[None]:
    """Turn an error of reading a line inside the context into a ``UserError`` with the ``fault`` and advice."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__} "
        reason = " ".join(f"{kind}{error}".split())[:200]
        raise UserError(f"{fault} ({reason}); {mend}") from None


def locate_lines(folder: Path, name: str) -> Path:
    """Return the path of a run's file of lines; in a published report this is ``NAME.gz``."""
    packed = folder / f"{name}.gz"
    return packed if packed.is_file() and not (folder / name).exists() else folder / name


def write_atomically(path: Path, content: "ReadableBuffer") -> None:
    """Write a file so that it never exists in part: by temporary file, fsync, rename."""
    write_parts(path, [content])


def json_bytes(content: object, *, sort_keys: bool = True, indent: int = 2) -> bytes:
    """Encode the content of an indented JSON file as UTF-8; half a surrogate pair is escaped."""
    text = json.dumps(content, indent=indent, sort_keys=sort_keys, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "backslashreplace")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines (without their newlines) as UTF-8, as `write_atomically` does."""
    write_parts(path, (f"{line}\n".encode("utf-8", "backslashreplace") for line in lines))


def copy_file(source: Path, path: Path) -> None:
    """Copy a file's content to ``path``, as `write_atomically` does."""
    with open_file(source) as content:
        write_parts(path, iter(lambda: content.read(_BLOCK_BYTES), b""))


def write_parts(path: Path, chunks: "Iterable[ReadableBuffer]") -> None:
    """Write a file chunk by chunk, as `write_atomically`; raise ``UserError`` for a link, which may be another's."""
    if path.is_symlink():
        raise UserError(f"{path}: is a link, which is not written over; remove it, or choose another place")
    half = _partial_path(path)
    with _lock_partial(lambda: os.open(half, _OPEN_FLAGS, 0o666), half) as handle:
        try:
            with open(handle, "wb", closefd=False) as file:
                file.truncate()
                for chunk in chunks:
                    file.write(chunk)
                file.flush()
                os.fsync(handle)
            half.replace(path)
        finally:
            if _is_at(handle, half):
                half.unlink(missing_ok=True)


def write_files(folder: Path, names: Iterable[str], files: Mapping[str, bytes]) -> None:
    """Write ``files`` (content by name) into a folder, and remove its other ``names``; raises ``UserError``."""
    with report_unwritable(folder, "--output"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            if name in files:
                write_atomically(folder / name, files[name])
            else:
                (folder / name).unlink(missing_ok=True)


@contextmanager
def report_unwritable(path: Path, choice: str = "place") -> Iterator[None]:
    """Turn an ``OSError`` inside the context into a ``UserError``: the user chose a path that can't be written."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); choose another {choice}") from None


@contextmanager
def write_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill, and rename it to ``path`` unless an error was raised.

    A folder that exists at ``path`` by then remains, as another process may have been first. To replace it, call
    `remove_folder` at the end of the context.
    """
    half = _partial_path(path)
    half.parent.mkdir(parents=True, exist_ok=True)
    with _lock_partial(lambda: _open_folder(half), half) as handle:
        try:
            for leftover in half.iterdir():
                _remove_path(leftover)
            yield half
            if not path.exists():
                half.rename(path)
        finally:
            if _is_at(handle, half):
                shutil.rmtree(half, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Remove a folder, if it is there, so that it never exists in part."""
    discarded = _partial_path(path.with_name(f"{path.name}.gone"))
    _remove_path(discarded)
    with suppress(FileNotFoundError):
        path.rename(discarded)
    _remove_path(discarded)


def _is_partial(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(PARTIAL_SUFFIX)


def sweep(half: Path) -> None:
    """Remove a half-written file or folder that a killed writer left; a writer that still works has it locked."""
    with suppress(FileNotFoundError):
        handle = os.open(half, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove_path(half)
        finally:
            os.close(handle)


_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW


def _partial_path(path: Path) -> Path:
    return path.with_name(f".{path.name}{PARTIAL_SUFFIX}")


def _open_folder(folder: Path) -> int:
    while True:
        with suppress(FileExistsError):
            folder.mkdir()
        with suppress(FileNotFoundError):  # another writer has just renamed it
            return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


@contextmanager
def _lock_partial(open_half: Callable[[], int], half: Path) -> Iterator[int]:
    """Wait until no other process writes the partial file ``half``, lock it and yield its handle."""
    while True:
        handle = open_half()
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # Otherwise the writer that held the lock has renamed or removed the opened file.
            if _is_at(handle, half):
                yield handle
                return
        finally:
            os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR)
"""Errors for a path that can't be written: no permission, or a folder has this name."""


@contextmanager
def lock_folder(folder: Path, writer: str = "build", owned: Sequence[str] = ()) -> Iterator[None]:
    """Create ``folder`` and lock it until this process leaves the context or dies.

    ``owned`` are the files and folders in it that this run writes: partial files of a killed run are removed, and no
    owned path may be a link, as it would be replaced; ``folder`` itself may be a link. Raises ``UserError`` if the
    folder can't be made or written (also when the disk fills up), for a link among ``owned``, and if another process
    has locked the folder (the message calls that process ``writer``).
    """
    handle = _make_folder(folder)
    try:
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UserError(f"{folder}: no permission to write here; choose another --output")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder}: another {writer} is writing here; wait for it or choose another --output"
            ) from None
        _clean_up(folder, owned)
        yield
    except OSError as error:
        if is_disk_full(error) or (error.errno in _FORBIDDEN and _is_in(folder, error.filename)):
            raise _make_write_error(Path(error.filename or folder), error) from error
        raise
    finally:
        os.close(handle)


def _make_folder(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder, os.O_RDONLY)
    except (FileExistsError, NotADirectoryError):
        kind = "a link that leads to no folder" if folder.is_symlink() else "a file"
        raise UserError(
            f"{folder}: there is {kind} where the output folder should be; remove it or choose another --output"
        ) from None
    except OSError as error:
        raise _make_write_error(folder, error) from None


def _clean_up(folder: Path, owned: Sequence[str]) -> None:
    partial_paths = []
    for path in chain(filter(_is_partial, folder.iterdir()), _walk_paths(folder / name for name in owned)):
        if path.is_symlink():
            raise UserError(
                f"{path}: a link (to {os.readlink(path)}), which would be replaced or written "
                "through; remove it, put what it leads to in its place, or choose another --output"
            )
        if kind := special_kind(path):
            raise UserError(f"{path}: {kind}, where a file or folder should be; remove it or choose another --output")
        if _is_partial(path):
            partial_paths.append(path)
    for half in partial_paths:
        sweep(half)


def _is_in(folder: Path, name: object) -> bool:
    """Whether an error may be about a file in ``folder`` (Arrow's errors have no file name)."""
    return name is None or Path(os.path.abspath(str(name))).is_relative_to(os.path.abspath(folder))


def _walk_paths(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the paths and all that is in them; no link is followed."""
    for path in paths:
        yield path
        for parent, folders, files in os.walk(path) if not path.is_symlink() else ():
            yield from (Path(parent, name) for name in (*folders, *files))


def _make_write_error(folder: Path, error: OSError) -> UserError:
    return UserError(f"{folder}: cannot write ({error.strerror or error}); choose another --output")


def is_disk_full(error: OSError) -> bool:
    """Whether an error means that no more bytes fit (device, quota or file-size limit)."""
    return error.errno in _DISK_FULL
