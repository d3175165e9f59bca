"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to that takes its name when it is complete; an existing file stays until then.

    It is a new file in the same folder, which is then renamed: after a full disk, or a process that ends
    early, the old file is unchanged. A link stays a link; a device or a pipe is written to directly. Errors
    name the path.
    """
    final = Path(os.path.realpath(path))
    mode = final.stat().st_mode if final.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        with final.open("wb") as file:  # raises the error for a folder
            yield file
        return
    scratch = final.with_name(f".{final.name[:100]}.{secrets.token_hex(8)}")
    try:
        with scratch.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            scratch.chmod(stat.S_IMODE(mode))
        os.replace(scratch, final)
    except BaseException as error:
        with suppress(OSError):
            scratch.unlink()
        if isinstance(error, OSError) and error.filename == str(scratch):
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
        raise


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text file completely or not at all, see `replacing`; returns its path."""
    data = text.encode("utf-8")
    with replacing(path) as file:
        file.write(data)
    return Path(path)
