"""The folder of compiled code: only its owner can store there what is loaded later.

A loaded library runs with all rights of its user. Therefore the folder and each file in it must belong to the
user, and others must not be able to write there, or to put another folder in its place. The digest of each
file is stored beside it and compared before the file is loaded, so that a truncated file is made again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MAX_AGE = 3600.0
"""Seconds after which a working folder is assumed to belong to a killed process.

Origin: chosen; it decides about files that are left over, not about time.
"""

MAX_BYTES = 2**30
"""The largest file that is read. Compiled kernels have a few megabytes at most; larger files are foreign.

Origin: chosen; it bounds what a foreign file can do, not time.
"""

WORK = "work-"
"""The prefix of the names of working folders."""

OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Unusable(Exception):
    """A folder or the compiler cannot be used; the message says why."""


def cache_folder() -> Path:
    """The folder of compiled kernels: $SYMAD_CACHE, or symad in the user's cache folder.

    The user's cache folder is $XDG_CACHE_HOME if that is an absolute path, else ~/.cache.

    Raises:
        Unusable: there is no cache folder, or $SYMAD_CACHE is not an absolute path.
    """
    if chosen := os.environ.get("SYMAD_CACHE", ""):
        if not os.path.isabs(chosen):
            raise Unusable(f"SYMAD_CACHE={chosen!r} is not an absolute path")
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "symad"
    home = os.path.expanduser("~") if os.environ.get("HOME", "unset") else ""
    if not os.path.isabs(home):
        raise Unusable("the user has no home folder: set SYMAD_CACHE to an absolute path")
    return Path(home) / ".cache" / "symad"


def make_private(folder: Path) -> None:
    """Make a folder and its parents such that only the owner may enter.

    Raises:
        Unusable: the folder cannot be made or written, belongs to another user, or can be replaced by others.
    """
    try:
        _check_way(folder)
        _make(folder)
        about = folder.stat()
        if not stat.S_ISDIR(about.st_mode):
            raise Unusable(f"{folder} is not a folder")
        if not _is_mine(about):
            raise Unusable(f"{folder} belongs to another user")
        if stat.S_IMODE(about.st_mode) & 0o077:
            folder.chmod(0o700)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, before Python 3.13
        raise Unusable(f"{folder}: {getattr(error, 'strerror', None) or error}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Unusable(f"{folder} cannot be written")


def _make(folder: Path) -> None:
    """Like mkdir -p, but every new folder is private, whatever the umask is."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        _make(folder.parent)
    with suppress(FileExistsError):  # another process was faster
        folder.mkdir(mode=0o700)
        folder.chmod(0o700)


def _check_way(folder: Path) -> None:
    """Raises Unusable if another user could put a folder in place of this one."""
    if not hasattr(os, "geteuid"):
        return
    for part in (folder, *folder.parents):
        try:
            about = part.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(about.st_mode):
            if about.st_uid not in (os.geteuid(), 0):
                raise Unusable(f"{part} is a symbolic link of another user")
            _check_way(part.resolve())
        elif part != folder and about.st_mode & stat.S_IWOTH and not about.st_mode & stat.S_ISVTX:
            raise Unusable(f"{part} can be written by everybody")


def _is_mine(about: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or about.st_uid == os.geteuid()


@contextmanager
def working_folder(parent: Path | None = None) -> Iterator[Path]:
    """A temporary private folder, in ``parent`` or among the system's temporary files.

    Raises:
        Unusable: the folder cannot be made.
    """
    if parent is not None:
        _sweep(parent)
    try:
        made = Path(tempfile.mkdtemp(prefix=WORK if parent else f"symad-{WORK}", dir=parent))
        made.chmod(0o700)
    except OSError as error:
        raise Unusable(f"no temporary folder can be made: {error.strerror or error}") from None
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Remove the working folders of processes that were killed."""
    for left in parent.glob(f"{WORK}*"):
        with suppress(OSError):
            if time.time() - left.lstat().st_mtime > MAX_AGE:
                shutil.rmtree(left, ignore_errors=True)


def keep(made: Path, kept: Path) -> None:
    """Move a file to its place and write its digest beside it, each in one step.

    A reader between the two steps finds a digest that does not match, and makes the file again.
    """
    noted = made.with_suffix(".sha256")
    noted.write_text(_digest(made, kept), encoding="ascii")
    for part in (made, noted):
        part.chmod(0o700)
    os.replace(made, kept)
    os.replace(noted, _note(kept))


def is_sound(kept: Path) -> bool:
    """Whether a file exists, belongs to the user, and has the stored digest."""
    try:
        for part in (kept, _note(kept)):
            about = part.lstat()
            if not stat.S_ISREG(about.st_mode) or not _is_mine(about) or about.st_nlink != 1:
                return False
            if about.st_size > MAX_BYTES or (hasattr(os, "geteuid") and about.st_mode & OTHERS):
                return False
        return _note(kept).read_text(encoding="ascii") == _digest(kept, kept)
    except (OSError, UnicodeDecodeError):
        return False


def _note(kept: Path) -> Path:
    return kept.with_suffix(".sha256")


def _digest(file: Path, kept: Path) -> str:
    """The digest of the name and the contents, so that a file moved to another name does not match."""
    return hashlib.sha256(kept.name.encode() + b"\0" + file.read_bytes()).hexdigest()
