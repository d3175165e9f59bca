"""What a figure was measured on: date, processor, load, and the versions of the libraries that were timed."""

from __future__ import annotations

import os
import platform
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


def measured_on(*packages: str) -> dict[str, str]:
    """The date, the machine with its load at this moment, and the versions of Python and of the packages."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{processor_name()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        **{package: installed(package) or "not installed" for package in packages},
    }
