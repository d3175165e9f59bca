"""Times of calls on the device, by CUDA events around whole calls."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any


def one_call(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    import cupy as cp

    start, stop = cp.cuda.Event(), cp.cuda.Event()
    start.record()
    call()
    stop.record()
    stop.synchronize()
    return float(cp.cuda.get_elapsed_time(start, stop)) / 1e3


def seconds(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Seconds of the first call, which compiles, by wall clock; and the median of ``repeats`` later calls."""
    import cupy as cp

    begin = time.perf_counter()
    call()
    cp.cuda.Device().synchronize()
    first = time.perf_counter() - begin
    return first, statistics.median(one_call(call) for _ in range(repeats))
