"""Files that are written whole or not at all."""

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
    """A file to write to that takes its name when it is complete; what was there stays until then.

    It is a new file in the same folder, which is then renamed: a full disk, or a process that ends in the
    middle, leaves the old file. A link stays a link; a device or a pipe is written to. Errors name the path.
    """
    final = Path(os.path.realpath(path))
    mode = final.stat().st_mode if final.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        with final.open("wb") as file:  # which raises the error of a folder
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
    """Write a text file whole or not at all, see `replacing`; returns its path."""
    data = text.encode("utf-8")
    with replacing(path) as file:
        file.write(data)
    return Path(path)
