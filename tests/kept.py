"""What tests compile is kept from run to run, outside the checkout, by its content.

The folder is ``$SYMAD_TEST_CACHE``, or ``symad-tests`` in the user's cache folder. A name contains the digest
of everything that the result depends on, so no entry ever becomes wrong. An entry that no run has used for
`DAYS` days is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from functools import cache
from pathlib import Path

DAYS = 30


@cache
def folder(name):
    """The folder for one kind of results, such as "kernels"; made on first use."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = Path(os.environ.get("SYMAD_TEST_CACHE") or home / "symad-tests") / name
    path.mkdir(parents=True, exist_ok=True)
    oldest = time.time() - DAYS * 24 * 3600
    for entry in path.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process may be removing it
            if entry.stat().st_mtime < oldest:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return path


def digest(*texts):
    """A name for what depends on these texts alone."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


def kept(path, make):
    """`path`, which ``make(temporary path)`` makes if it is not there: a file, or a folder."""
    if not path.exists():
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        make(temporary)
        try:
            temporary.rename(path)
        except OSError:  # another process has made the same folder in the meantime
            shutil.rmtree(temporary)
    with contextlib.suppress(OSError):
        os.utime(path)
    return path
