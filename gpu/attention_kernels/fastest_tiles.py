"""The functions of generated modules that choose the tiles of an attention kernel by trial runs.

Different tiles add in different orders, and timings vary from run to run. The result of the first
measurement, on a device of one name and for sizes of one binary order, is therefore kept in a file beside
CuPy's compiled kernels, and used by all later calls and processes. Nothing is measured while a graph is
recorded, for little work, and if no file can be written; then the order of estimates decides, as it does with
`symad.gpu.options(autotune=False)`.
"""

from __future__ import annotations

from string import Template

MIN_PRODUCTS = 2**30
"""The number of products q_id k_jd in a call from which trial runs pay: some 10 µs near the peak of tensor
cores, twice the time of a launch (an estimate from published figures).

Origin: not measured on a device.
"""

MARGIN = 0.95
"""Other tiles replace those that are first by estimate if they take less than this share of their time."""

TRIALS = 3
"""The number of timed runs of each choice of tiles; the fastest counts. A run before them compiles."""

IMPORTS = {
    "import os", "from contextlib import suppress", "from hashlib import sha256", "from pathlib import Path",
    "from uuid import uuid4",
}  # fmt: skip

_RUN = '''_FASTEST = {}


def _run(plans, name, rows, heads, batch, args):
    """Launch the tiles that are the fastest here at sizes like these; with little work, the first."""
    found, keys, device = _fitting(plans), args[1].shape[2], cp.cuda.Device().id
    sizes = tuple(size.bit_length() for size in (rows, keys, heads*batch))
    key = device, id(plans), sizes
    if len(found) == 1 or args[0].size*keys < $least:
        key = None
    elif key not in _FASTEST and not cp.cuda.get_current_stream().is_capturing():
        runtime, call = cp.cuda.runtime, (name, rows, heads, batch, args)
        calls = [lambda launches=launches: _launch_all(launches, *call) for launches in found]
        about = runtime.getDeviceProperties(device)["name"], runtime.runtimeGetVersion(), cp.__version__
        _FASTEST[key] = _fastest(calls, (*about, name, sizes, found))
    _launch_all(found[_FASTEST.get(key, 0)], name, rows, heads, batch, args)


def _fastest(calls, about):
    """Which of the calls is the fastest: as a file says, or by trial runs. The first file holds."""
    folder = Path(os.environ.get("CUPY_CACHE_DIR") or "~/.cupy/kernel_cache").expanduser()
    kept = folder/f"symad_tiles_{sha256(repr(about).encode()).hexdigest()}"
    mine = kept.with_name(f"{kept.name}_{uuid4().hex}")
    try:
        if not kept.exists():
            folder.mkdir(parents=True, exist_ok=True)
            mine.touch()  # before the trials, which are for nothing where it cannot be written
            times = [_milliseconds(call) for call in calls]
            best = times.index(min(times))
            mine.write_text(str(best if times[best] < $margin*times[0] else 0))
            try:
                os.link(mine, kept)
            except FileExistsError:  # another process was faster
                pass
            except OSError:  # a file system without hard links
                mine.replace(kept)
        return min(int(kept.read_text()), len(calls) - 1)
    except (OSError, ValueError):
        return 0
    finally:
        with suppress(OSError):
            mine.unlink()


def _milliseconds(call):
    call()
    times = []
    for _ in range($trials):
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, stop))
    return min(times)
'''


def fastest_text() -> str:
    """The function ``_run`` of a module, and the functions it needs."""
    return Template(_RUN).substitute(least=MIN_PRODUCTS, margin=MARGIN, trials=TRIALS)
