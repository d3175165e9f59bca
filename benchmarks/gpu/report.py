"""The head of every GPU report: device, driver, versions, date."""

from __future__ import annotations

import datetime
import json
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "symad", "sympy", "numpy", "cupy-cuda12x", "cupy-cuda13x", "torch", "triton", "jax", "pykeops",
    "nvidia-cuda-nvrtc", "nvidia-cublas",
)  # fmt: skip


def require_device() -> Any:
    """CuPy, if there is a device; otherwise the program ends with one line and exit status 2."""
    from symad.gpu.compile import GpuError, cupy

    try:
        return cupy()
    except GpuError as error:
        print(f"no device: {error}", file=sys.stderr)
        sys.exit(2)


def surroundings(timed: bool = True) -> dict[str, Any]:
    """Device, driver and versions; without a device (a rehearsal) it says so."""
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    found: dict[str, Any] = {
        "date": now.isoformat(),
        "python": platform.python_version(),
        "versions": {},
    }
    for package in PACKAGES:
        try:
            found["versions"][package] = version(package)
        except PackageNotFoundError:
            continue
    if not timed:
        return {"device": "rehearsal on a CPU: no times", **found}
    import cupy as cp

    device = cp.cuda.Device()
    properties = cp.cuda.runtime.getDeviceProperties(device.id)
    return {
        "device": properties["name"].decode(),
        "compute_capability": device.compute_capability,
        "multiprocessors": device.attributes["MultiProcessorCount"],
        "memory_bytes": int(properties["totalGlobalMem"]),
        "driver": cp.cuda.runtime.driverGetVersion(),
        "runtime": cp.cuda.runtime.runtimeGetVersion(),
        "nvrtc": ".".join(map(str, cp.cuda.nvrtc.getVersion())),
        **found,
    }


def save(out: Path, report: Mapping[str, Any], complete: bool) -> None:
    """Write a report; called again after each part, so that an interrupted run leaves its measurements."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({**report, "complete": complete}, indent=1) + "\n")


def release() -> None:
    """Return the memory that CuPy and torch have reserved to the device."""
    import gc

    gc.collect()
    if "cupy" in sys.modules:
        sys.modules["cupy"].get_default_memory_pool().free_all_blocks()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
