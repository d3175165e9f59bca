"""What a figure was measured on: date, processor, load, and the versions of the libraries that were timed."""

from __future__ import annotations

import functools
import importlib
import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def processor_name() -> str:
    """The name of the processor, as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def installed(package: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@functools.cache
def loaded(peer: str) -> bool:
    """Whether a library can be imported. One that cannot is left out, and the error stream says why, once.

    Besides absent ones, these are installed ones that break: another version of a library that they need, a
    missing shared library. What a library does after its import is no reason to leave it out.
    """
    try:
        importlib.import_module(peer)
    except Exception as error:
        print(f"{peer} is left out: {type(error).__name__}: {error}", file=sys.stderr)
        return False
    return True


def measured_on(*packages: str) -> dict[str, str]:
    """The date, the machine with its load at this moment, and the versions of Python and of the packages."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{processor_name()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        **{package: installed(package) or "not installed" for package in packages},
    }
