"""Files and folders that never exist in part, and their digests.

What is being written is hidden beside its place as ``.NAME.half``, and locked by its writer: two
who write one thing take turns, and what nobody holds is what a killed run left (`sweep`).
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
HALF = ".half"
_BLOCK = 1 << 20
_GZIP = b"\x1f\x8b"


def sha256_of(path: Path) -> str:
    """Hexadecimal, of a file's content, which need not fit into memory."""
    with open_file(path) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@contextmanager
def unpacked(path: Path) -> Iterator[BinaryIO]:
    """A file to read, through gzip if its first bytes say so, whatever its name.

    Raises ``OSError``, and while it is read ``EOFError`` and ``zlib.error`` too, if it is damaged.
    """
    with open_file(path) as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        if not packed:
            yield file
            return
        with gzip.open(file) as stream:
            yield cast(BinaryIO, stream)


MOST_LINE = 1 << 26
"""Bytes of a line; the longest trajectories have a hundredth of them."""


def read_lines(
    file: Path, read: Callable[[bytes], T], what: str, mend: str, *, blanks: bool = False
) -> Iterator[tuple[str, T]]:
    """What ``read`` makes of each line of a file (gzipped or not), with its place; ``blanks`` are passed over.

    Raises ``UserError``, with ``mend`` as what to do, for a file that can't be read and a line that is no such thing.
    """
    try:
        with unpacked(file) as lines:
            for number, line in enumerate(iter(lambda: lines.readline(MOST_LINE + 1), b""), 1):
                where = f"{file}, line {number}"
                if len(line) > MOST_LINE:
                    raise UserError(f"{where}: has more than {MOST_LINE:,} bytes; {mend}")
                if not (blanks and not line.strip()):
                    yield where, _read_line(line, read, f"{where}: is no {what}", mend)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{file}: cannot be read ({reason}); {mend}") from None


def _read_line(line: bytes, read: Callable[[bytes], T], fault: str, mend: str) -> T:
    try:
        return read(line)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__} "
        reason = " ".join(f"{kind}{error}".split())[:200]
        raise UserError(f"{fault} ({reason}); {mend}") from None


def place_of(folder: Path, name: str) -> Path:
    """Where a run's file of lines is; of a report that was published it is packed."""
    packed = folder / f"{name}.gz"
    return packed if packed.is_file() and not (folder / name).exists() else folder / name


def write_atomically(path: Path, content: "ReadableBuffer") -> None:
    """Write a file so that it never exists in part: temporary file, fsync, rename."""
    write_parts(path, [content])


def json_bytes(content: object, *, sort_keys: bool = True, indent: int = 2) -> bytes:
    """The content of a JSON file for people to read; half a surrogate pair becomes its escape."""
    text = json.dumps(content, indent=indent, sort_keys=sort_keys, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "backslashreplace")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines (without their newlines) as UTF-8, as `write_atomically` does."""
    write_parts(path, (f"{line}\n".encode("utf-8", "backslashreplace") for line in lines))


def copy_file(source: Path, path: Path) -> None:
    """Write a file with another's content, as `write_atomically` does."""
    with open_file(source) as content:
        write_parts(path, iter(lambda: content.read(_BLOCK), b""))


def write_parts(path: Path, parts: "Iterable[ReadableBuffer]") -> None:
    """Write a file from its parts, as `write_atomically` does.

    Raises ``UserError`` for a link, which may be another's: neither it nor its target is replaced.
    """
    if path.is_symlink():
        raise UserError(f"{path}: is a link, which is not written over; remove it, or choose another place")
    half = _half(path)
    with _held(lambda: os.open(half, _NEW, 0o666), half) as handle:
        try:
            with open(handle, "wb", closefd=False) as file:
                file.truncate()
                for part in parts:
                    file.write(part)
                file.flush()
                os.fsync(handle)
            half.replace(path)
        finally:
            if _is_at(handle, half):
                half.unlink(missing_ok=True)


def write_files(folder: Path, names: Iterable[str], files: Mapping[str, bytes]) -> None:
    """Write ``files`` and remove what else of ``names`` is there; ``UserError`` if it can't be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            if name in files:
                write_atomically(folder / name, files[name])
            else:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}); choose another --output") from None


@contextmanager
def named_by_user(path: Path) -> Iterator[None]:
    """Where a file is written that the user named: what the system objects to is their mistake.

    Raises ``UserError`` for an ``OSError`` within.
    """
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """An empty folder to fill, which is renamed to ``path`` when that went well.

    One that stands there at the end stays, as another may have been first; to replace it, remove it
    last of all (`remove_folder`).
    """
    half = _half(path)
    half.parent.mkdir(parents=True, exist_ok=True)
    with _held(lambda: _opened(half), half) as handle:
        try:
            for left in half.iterdir():
                _remove(left)
            yield half
            if not path.exists():
                half.rename(path)
        finally:
            if _is_at(handle, half):
                shutil.rmtree(half, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Remove a folder, if it is there, so that it never exists in part."""
    gone = _half(path.with_name(f"{path.name}.gone"))
    _remove(gone)
    with suppress(FileNotFoundError):
        path.rename(gone)
    _remove(gone)


def is_half(path: Path) -> bool:
    """Whether a path is what a writer hides until it is whole."""
    return path.name.startswith(".") and path.name.endswith(HALF)


def sweep(half: Path) -> None:
    """Remove what a writer that was killed left half-written; one that is at work holds it."""
    try:
        handle = os.open(half, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(half)
    except BlockingIOError:
        return
    finally:
        os.close(handle)


_NEW = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW


def _half(path: Path) -> Path:
    return path.with_name(f".{path.name}{HALF}")


def _opened(folder: Path) -> int:
    while True:
        with suppress(FileExistsError):
            folder.mkdir()
        with suppress(FileNotFoundError):  # another has just renamed it
            return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


@contextmanager
def _held(opened: Callable[[], int], half: Path) -> Iterator[int]:
    """The handle of a ``half`` that this process alone writes; whoever else does is waited for."""
    while True:
        handle = opened()
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # The one that was waited for has renamed or removed what was opened.
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


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR)
"""Nothing can be written there: forbidden, or a folder is there."""


@contextmanager
def exclusive(folder: Path, who: str = "build", owned: Sequence[str] = ()) -> Iterator[None]:
    """Create ``folder`` and hold it against others until the end, even a violent one.

    ``owned`` are the files and folders there that this run writes: what a killed run left half-written among them is
    removed, and none of them may be a link, as it would be replaced. ``folder`` itself may be one. Raises
    ``UserError`` when it cannot be made or written (a full disk in between, too), when another (``who``: what such a
    one is called) holds it, and for a link.
    """
    handle = _made_folder(folder)
    try:
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UserError(f"{folder}: no permission to write here; choose another --output")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder}: another {who} is writing here; wait for it or choose another --output"
            ) from None
        _put_in_order(folder, owned)
        yield
    except OSError as error:
        if is_disk_full(error) or (error.errno in _FORBIDDEN and _is_in(folder, error.filename)):
            raise cannot_write(Path(error.filename or folder), error) from error
        raise
    finally:
        os.close(handle)


def _made_folder(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder, os.O_RDONLY)
    except (FileExistsError, NotADirectoryError):
        what = "a link that leads to no folder" if folder.is_symlink() else "a file"
        raise UserError(
            f"{folder}: there is {what} where the output folder should be; remove it or choose another --output"
        ) from None
    except OSError as error:
        raise cannot_write(folder, error) from None


def _put_in_order(folder: Path, owned: Sequence[str]) -> None:
    halves = []
    beside = filter(is_half, folder.iterdir())
    for path in chain(beside, _below(folder / name for name in owned)):
        if path.is_symlink():
            raise UserError(
                f"{path}: a link (to {os.readlink(path)}), which would be replaced or written "
                "through; remove it, put what it leads to in its place, or choose another --output"
            )
        if kind := special_kind(path):
            raise UserError(f"{path}: {kind}, where a file or folder should be; remove it or choose another --output")
        if is_half(path):
            halves.append(path)
    for half in halves:
        sweep(half)


def _is_in(folder: Path, name: object) -> bool:
    """Whether an error may be about a file there: Arrow's name none."""
    return name is None or Path(os.path.abspath(str(name))).is_relative_to(os.path.abspath(folder))


def _below(places: Iterable[Path]) -> Iterator[Path]:
    """The places, and all that is in them; no link is followed."""
    for place in places:
        yield place
        for parent, folders, files in os.walk(place) if not place.is_symlink() else ():
            yield from (Path(parent, name) for name in (*folders, *files))


def cannot_write(folder: Path, error: OSError) -> UserError:
    """The one line for a folder that cannot be written."""
    reason = error.strerror or str(error)
    return UserError(f"{folder}: cannot write ({reason}); choose another --output")


def is_disk_full(error: OSError) -> bool:
    """Whether an error means that no more bytes fit (device, quota or file-size limit)."""
    return error.errno in _DISK_FULL
