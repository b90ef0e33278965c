"""Opens files for reading; refuses pipes, sockets and devices, which may never end."""

import errno
import os
import stat
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path

_SPECIAL: Mapping[int, str] = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_OPENED_BY_SHELL = ("/dev/std", "/dev/fd/", "/proc/self/fd/")


def special_kind(path: str | Path) -> str:
    """Return "a named pipe", "a socket" or "a device" for a path that leads to one; "" for any other path.

    A pipe inherited by this process ends with its writer, and ``/dev/null`` is empty: both count as files.
    """
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):
        return ""  # opening it will say why it can't be read
    if str(path) == os.devnull or str(path).startswith(_OPENED_BY_SHELL):
        return ""
    return _SPECIAL.get(kind, "")


def open_file(path: Path) -> BufferedReader:
    """Open a file for reading; raises ``OSError``, also for a pipe, a socket or a device, which may never end.

    >>> open_file(Path("/dev/zero"))
    Traceback (most recent call last):
    OSError: [Errno 22] it is a device, not a file: '/dev/zero'
    """
    if kind := special_kind(path):
        raise OSError(errno.EINVAL, f"it is {kind}, not a file", str(path))
    return path.open("rb")
