"""The functions of generated modules that launch the attention kernels.

`plans` lists the kernels of one pass for tiles from the fastest on. An entry is (least compute capability,
shared memory needed, launches); a launch is (threads, rows owned by a block, slices of the result, shared
memory, source). The kernels are in gpu/kernels.
"""

from __future__ import annotations

from string import Template

MODULE = """@lru_cache(maxsize=None)
def _module(source):
    return cp.RawModule(code=source, options=("-std=c++17",))
"""

DEVICE = '''@lru_cache(maxsize=None)
def _device(number):
    """Compute capability, shared memory of a block and multiprocessors; asking takes long."""
    device = cp.cuda.Device(number)
    known = device.attributes
    room, processors = known["MaxSharedMemoryPerBlockOptin"], known["MultiProcessorCount"]
    return int(device.compute_capability), room, processors
'''

LAUNCH = '''def _fitting(plans):
    """The launches of all tiles that this device can hold, the fastest by estimate first."""
    capability, room, _ = _device(cp.cuda.Device().id)
    found = [launches for least, needed, launches in plans if capability >= least and needed <= room]
    if found:
        return found
    raise ValueError(
        f"attention needs compute capability {plans[-1][0]/10} and {plans[-1][1]} bytes of shared memory; "
        f"this device has {capability/10} and {room}: use backend='numpy'"
    )


def _launch(launch, name, rows, heads, batch, args):
    threads, own, slices, shared, source = launch
    if max(heads, batch) > 65535:
        raise ValueError(f"attention on a GPU takes at most 65535 heads and batches, not {heads} and {batch}")
    if any(a.data.ptr % 16 for a in args if isinstance(a, cp.ndarray)):  # a view at an odd place
        source = "#define SYMAD_UNALIGNED\\n" + source
    kernel = _module(source).get_function(name)
    if shared > 49152:
        kernel.max_dynamic_shared_size_bytes = shared
    kernel((-(-rows//own)*slices, heads, batch), (threads,), args, shared_mem=shared)


def _launch_all(launches, *call):
    for launch in launches:
        _launch(launch, *call)


def _ready(a, dtype, width):
    """The array as the kernels read it: contiguous, rows filled up with zeros to a width."""
    a = cp.ascontiguousarray(a, dtype=dtype)
    if a.shape[-1] == width:
        return a
    bits = f"u{a.dtype.itemsize}"  # copied as bits: there are few kernels for bfloat16
    made = cp.zeros((*a.shape[:-1], width), dtype=bits)
    made[..., :a.shape[-1]] = a.view(bits)
    return made.view(a.dtype)


def _sizes(q, k, scale, arguments, real):
    sizes = (q.shape[1], k.shape[1], q.shape[2], k.shape[2])
    return (*(cp.int32(size) for size in sizes), real(scale), arguments)
'''

FIRST = '''def _run(plans, name, rows, heads, batch, args):
    """Launch the first of the tiles that this device can hold."""
    _launch_all(_fitting(plans)[0], name, rows, heads, batch, args)
'''

FORWARD = '''def _attention(q, k, v, plans, arguments, scale, dtype, real, widths):
    """Outputs and log-sum-exps."""
    batch, heads, n, _ = q.shape
    columns = v.shape[3]
    q, k, v = (_ready(a, dtype, w) for a, w in zip((q, k, v), widths))
    lse = cp.empty((batch, heads, n), dtype=real)
    out = cp.empty((batch, heads, n, v.shape[3]), dtype=dtype)
    if not k.size:
        lse.fill(-cp.inf)
        out.fill(0)
    elif q.size:
        args = (q, k, v, out, lse, *_sizes(q, k, scale, arguments[0], real))
        _run(plans, "attention_forward", n, heads, batch, args)
    return out[..., :columns], lse
'''

TANGENT = '''def _attention_tangent(q, k, v, out, lse, dots, plans, arguments, scale, dtype, real, widths):
    """Tangents of outputs and log-sum-exps along those of q, k and v."""
    batch, heads, n, _ = q.shape
    columns = v.shape[3]
    q, k, v = (_ready(a, dtype, w) for a, w in zip((q, k, v), widths))
    dots = [_ready(a, dtype, w) for a, w in zip(dots, widths)]
    out, lse = _ready(out, dtype, widths[2]), cp.ascontiguousarray(lse.astype(real, copy=False))
    out_dot, lse_dot = cp.zeros_like(out), cp.zeros_like(lse)
    if q.size and k.size:
        args = (q, k, v, out, lse, *dots, out_dot, lse_dot)
        sizes = _sizes(q, k, scale, arguments[0], real)
        _run(plans, "attention_tangent", n, heads, batch, (*args, *sizes))
    return out_dot[..., :columns], lse_dot
'''

STATISTICS = '''def _statistics(out, out_bar, lse_bar, real):
    """Δ = rowsum(ō ∘ o) - L̄."""
    products = out.astype(real, copy=False)*out_bar.astype(real, copy=False)
    delta = products.sum(axis=3)
    return cp.ascontiguousarray(delta if lse_bar is None else delta - lse_bar.astype(real, copy=False))


def _base(lse, real):
    """L in base 2; +inf where no key is visible."""
    base = cp.where(lse == -real(cp.inf), real(cp.inf), lse*real(1.4426950408889634))
    return cp.ascontiguousarray(base.astype(real, copy=False))
'''

DELTA = '''def _delta(launch, out, lse, out_bar, lse_bar, real):
    """L in base 2, +inf where no key is visible, and Δ = rowsum(ō ∘ o) - L̄."""
    lse = cp.ascontiguousarray(lse.astype(real, copy=False))
    bar = cp.uint64(0) if lse_bar is None else cp.ascontiguousarray(lse_bar.astype(real, copy=False))
    delta, base = cp.empty_like(lse), cp.empty_like(lse)
    threads, _, _, _, source = launch
    kernel, rows = _module(source).get_function("attention_delta"), cp.int64(lse.size)
    kernel((-(-lse.size//(threads//32)),), (threads,), (out, out_bar, lse, bar, delta, base, rows))
    return base, delta
'''

COTANGENTS = '''def _attention_cotangents(
    q, k, v, out, lse, bars, plans, arguments, scale, dtype, real, widths, counts, query_and_key_bars
):
    """Cotangents of q, k and v, and sums of the parameters': by row, column, diagonal, pair."""
    batch, heads, n, d = q.shape
    m, columns = k.shape[2], v.shape[3]
    q, k, v = (_ready(a, dtype, w) for a, w in zip((q, k, v), widths))
    out, out_bar = (_ready(a, dtype, widths[2]) for a in (out, bars[0]))
    made = cp.empty_like if q.size and k.size else cp.zeros_like  # the kernels write all of them
    results = [made(a) for a in (q, k, v)]
    shapes = ((n,), (m,), (max(n + m - 1, 0),), (n, m))
    sums = [
        cp.zeros((count, batch, heads, *shape), dtype=real) if count else cp.uint64(0)
        for count, shape in zip(counts, shapes)
    ]
    if q.size and k.size:
        base, delta = _delta(_fitting(plans["backward_q"])[0][0], out, lse, out_bar, bars[1], real)
        common = (q, k, v, out_bar, base, delta)
        sizes = _sizes(q, k, scale, arguments[0], real)
        query_and_key_bars(plans, common, results, sums, sizes)
        if counts[2]:
            args = (*common, sums[2], *sizes)
            _run(plans["diagonals"], "attention_diagonals", n + m - 1, heads, batch, args)
    return results[0][..., :d], results[1][..., :d], results[2][..., :columns], sums
'''

OWNED = '''def _owned_bars(plans, common, results, sums, sizes):
    """The kernels of q̄, and of k̄ and v̄, with the sums by row, pair and column."""
    (batch, heads, n, _), (_, groups, m, _) = (a.shape for a in results[:2])
    args = (*common, results[0], sums[0], sums[3], *sizes)
    _run(plans["backward_q"], "attention_backward_q", n, heads, batch, args)
    args = (*common, results[1], results[2], sums[1], cp.uint64(0), *sizes)
    _run(plans["backward_kv"], "attention_backward_kv", m, groups, batch, args)
'''

ATOMIC = '''def _atomic_bars(plans, common, results, sums, sizes):
    """The kernel of k̄ and v̄, which adds q̄ up by atomic additions: in no fixed order."""
    (batch, _, _, _), (_, groups, m, _) = (a.shape for a in results[:2])
    total = cp.zeros(results[0].shape, dtype=cp.float32)
    args = (*common, results[1], results[2], sums[1], total, *sizes)
    launches = _fitting(plans["backward_kv"])[0]  # no trial runs, which would add too
    _launch_all(launches, "attention_backward_kv", m, groups, batch, args)
    threads, _, _, _, source = launches[0]
    kernel, count = _module(source).get_function("attention_round"), total.size
    kernel((-(-count//(2*threads)),), (threads,), (total, results[0], cp.int64(count)))
'''

SECOND = '''def _attention_second(
    q, k, v, out, lse, bars, dots, plans, arguments, scale, dtype, real, widths
):
    """Tangents of the cotangents of q, k and v, the parameters held fixed."""
    batch, heads, n, d = q.shape
    groups, m, columns = k.shape[1], k.shape[2], v.shape[3]
    q, k, v = (_ready(a, dtype, w) for a, w in zip((q, k, v), widths))
    q_dot, k_dot, v_dot = (_ready(a, dtype, w) for a, w in zip(dots[:3], widths))
    out, out_bar, out_dot, bar_dot = (
        _ready(a, dtype, widths[2]) for a in (out, bars[0], dots[3], dots[5])
    )
    results = [cp.zeros_like(a) for a in (q, k, v)]
    if q.size and k.size:
        base = _base(lse.astype(real, copy=False), real)
        delta = _statistics(out, out_bar, bars[1], real)
        delta_dot = _statistics(out, bar_dot, dots[6], real) + _statistics(out_dot, out_bar, None, real)
        lse_dot = cp.ascontiguousarray(dots[4].astype(real, copy=False))
        common = (q, k, v, out_bar, q_dot, k_dot, v_dot, bar_dot, base, delta, lse_dot, delta_dot)
        sizes = _sizes(q, k, scale, arguments[0], real)
        _run(plans["second_q"], "attention_second_q", n, heads, batch, (*common, results[0], *sizes))
        args = (*common, results[1], results[2], *sizes)
        _run(plans["second_kv"], "attention_second_kv", m, groups, batch, args)
    return results[0][..., :d], results[1][..., :d], results[2][..., :columns]
'''

EXTREMES = '''def _extremes(array, axis):
    """Minima and maxima of every 32 entries along an axis, or of all."""
    if axis is None:
        return array.min().reshape(1), array.max().reshape(1)
    last = cp.moveaxis(array, axis, -1)
    filler = cp.repeat(last[..., -1:], -last.shape[-1] % 32, axis=-1)
    chunks = cp.concatenate([last, filler], axis=-1).reshape(*last.shape[:-1], -1, 32)
    ends = chunks.min(axis=-1), chunks.max(axis=-1)
    return tuple(cp.ascontiguousarray(cp.moveaxis(end, -1, axis)) for end in ends)
'''

PARAMETER_BAR = '''def _parameter_bar(shape, terms, params, keys, real, dtype):
    """Sums of cotangents added up where the parameter was read, in a fixed order."""
    total = cp.zeros(shape, dtype=real)
    for kind, values, places, place in terms:
        if places is not None:
            add_laid_out(total, values, places)
            continue
        along = [cp.arange(size).reshape([-1 if a == k else 1 for a in range(values.ndim)])
                 for k, size in enumerate(values.shape)]
        i, j = {
            "row": (along[2], 0), "column": (0, along[2]), "diagonal": (along[2] - (keys - 1), 0),
            "pair": (along[2], along[-1]),
        }[kind]
        linear = cp.zeros((1,)*values.ndim, dtype=cp.int64)
        for index, size in zip(place(along[0], along[1], i, j, *params), shape):
            linear = linear*size + index
        axes = tuple(k for k, size in enumerate(linear.shape) if size == 1)
        values = values.sum(axis=axes, keepdims=True) if axes else values
        flat = cp.ascontiguousarray(cp.broadcast_to(linear, values.shape)).ravel()
        total += _segment_sum(flat, values.reshape(-1, 1), total.size, 1).reshape(shape)
    return total.astype(dtype, copy=False)
'''


# ---- the choice of tiles by trial runs -----------------------------------------------------------

# Different tiles add in different orders, and timings vary from run to run. The result of the first
# measurement, on a device of one name and for sizes of one binary order, is therefore kept in a file beside
# CuPy's compiled kernels, and used by all later calls and processes. Nothing is measured while a graph is
# recorded, for little work, and if no file can be written; then the order of estimates decides, as it does
# with `symad.gpu.options(autotune=False)`.


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
