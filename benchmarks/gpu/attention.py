"""Attention on a GPU: symad against unfused CuPy, torch's SDPA backends and FlexAttention, in one run.

It runs forward and backward for d in {64, 128}, N in {1k, 4k, 16k}, plain and causal, in bf16, fp32 and fp64,
with 16k tokens in all and heads · d = 2048; then score functions, first calls, and 64k tokens in fp32. Times
are medians of CUDA events around whole calls, on random data. Errors are relative to float64, on one head.
The count of operations is 4 B H N² d forward, half of it with a causal mask, and 2.5 times as many backward.
TF32 is off for the peers. Peers that are not installed, fail or run out of memory are reported as such.

Usage: python benchmarks/gpu/attention.py [--out FILE.json] [--quick] [--rehearse]

--rehearse runs everything that needs no GPU on the CPU, with tiny sizes: it tests this script and times
nothing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import symad
from benchmarks.gpu.attention_peers import PEERS, Unavailable, flex_first_call, twice_through_math
from benchmarks.gpu.report import release, require_device, save, surroundings
from benchmarks.gpu.timing import one_call
from symad import functions
from symad.gpu.eager import attention, attention_vjp
from symad.numeric import lower

Call = Callable[[], Any]


@dataclass(frozen=True)
class Setting:
    """One problem: (batch, heads, N, d) and a dtype."""

    dtype: str
    d: int
    n: int
    batch: int
    heads: int
    causal: bool

    def operations(self, direction: str) -> float:
        """The number of floating-point operations, by the convention above."""
        forward = 4.0 * self.batch * self.heads * self.n**2 * self.d * (0.5 if self.causal else 1)
        return forward * (2.5 if direction == "backward" else 1)


# ---------------------------------------------------------------- scores, as mathematics


def alibi(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return s + (j - i) * 2 ** (-(h + 1) / sp.Integer(2))


def soft_cap(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return 20 * sp.tanh(s / 20)


def learned_slopes(s: Any, b: Any, h: Any, i: Any, j: Any, slope: Any) -> Any:
    return s + slope[h] * (j - i)


def window(b: Any, h: Any, i: Any, j: Any) -> Any:
    return (j <= i) & (i - j < 1024)


# ---------------------------------------------------------------- measuring


def seconds(call: Call, timed: bool, budget: float = 0.4) -> float:
    """Median seconds of a call by CUDA events; 0 in a rehearsal."""
    call()
    if not timed:
        return 0.0

    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - begin < budget and len(times) < 50):
        times.append(one_call(call))
    return statistics.median(times)


def wide(array: Any) -> Any:
    """An array in float64, also from bfloat16."""
    if array.dtype.itemsize == 2:
        array = array.astype(np.float32)
    return array.astype(np.float64)


def exact_head(xp: Any, arrays: list[Any], causal: bool) -> list[Any]:
    """o, q̄, k̄, v̄ of the last head of the first batch in float64, by blocks of rows."""
    q, k, v, out_bar = (wide(a[0, -1]) for a in arrays)
    out, q_bar, k_bar, v_bar = (xp.zeros_like(a) for a in (q, q, k, v))
    scale, rows = q.shape[1] ** -0.5, 1024
    for begin in range(0, len(q), rows):
        part = slice(begin, begin + rows)
        s = scale * (q[part] @ k.T)
        if causal:
            hidden = xp.arange(len(k)) > xp.arange(begin, begin + len(s))[:, None]
            s = xp.where(hidden, -np.inf, s)
        p = xp.exp(s - s.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        out[part] = p @ v
        t_bar = p * (out_bar[part] @ v.T - (out_bar[part] * out[part]).sum(axis=1, keepdims=True))
        q_bar[part] = scale * (t_bar @ k)
        k_bar += scale * (t_bar.T @ q[part])
        v_bar += p.T @ out_bar[part]
    return [out, q_bar, k_bar, v_bar]


def error(xp: Any, found: Any, exact: Any) -> float:
    """‖found − exact‖ / ‖exact‖ on that head."""
    return float(xp.linalg.norm(wide(found[0, -1]) - exact) / xp.linalg.norm(exact))


@dataclass
class Report:
    """The measurements, one record for each number, printed as they come."""

    records: list[dict[str, Any]]
    timed: bool

    def add(self, name: str, setting: Setting, direction: str, call: Call, **more: Any) -> None:
        """Time a call; a call that fails is recorded with its reason."""
        record = {"name": name, "direction": direction, **setting.__dict__, **more}
        try:
            time_ = seconds(call, self.timed)
            if self.timed:
                record["ms"] = 1e3 * time_
                if direction != "second":
                    record["tflops"] = setting.operations(direction) / time_ / 1e12
        except Exception as reason:
            record["failed"] = f"{type(reason).__name__}: {reason}"[:200]
        self.records.append(record)
        print({k: v for k, v in record.items() if k not in ("batch", "heads")}, flush=True)


# ---------------------------------------------------------------- one setting


def draw(xp: Any, s: Setting) -> list[Any]:
    """q, k, v and ō."""
    rng = xp.random.default_rng(0)
    dtype = s.dtype
    if dtype == "bfloat16":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    shape = (s.batch, s.heads, s.n, s.d)
    return [rng.standard_normal(shape, dtype=np.float32).astype(dtype) for _ in range(4)]


def ours(xp: Any, s: Setting, arrays: list[Any], exact: list[Any], report: Report) -> None:
    """symad: forward, deterministic backward, and backward with atomic additions."""
    *qkv, out_bar = arrays

    def forward() -> Any:
        return attention(*qkv, causal=s.causal, return_lse=True)

    def backward(deterministic: bool = True) -> Any:
        return attention_vjp(*qkv, out, lse, out_bar, causal=s.causal, deterministic=deterministic)

    out, lse = forward()
    bars, again = backward(), backward()
    same = all(
        bool((getattr(bars, n).view(np.uint8) == getattr(again, n).view(np.uint8)).all())
        for n in "qkv"
    )
    errors = [error(xp, a, e) for a, e in zip((out, bars.q, bars.k, bars.v), exact, strict=True)]
    report.add("symad", s, "forward", forward, error=errors[0])
    report.add(
        "symad", s, "backward", backward,
        error=max(errors[1:]), same_bits=same,
    )  # fmt: skip
    if s.dtype in ("bfloat16", "float16"):
        loose = backward(False)
        report.add(
            "symad, atomic additions", s, "backward",
            lambda: backward(False),
            error=error(xp, loose.q, exact[1]),
        )  # fmt: skip


def peers(xp: Any, s: Setting, arrays: list[Any], exact: list[Any], report: Report) -> None:
    """Every other implementation; one that is missing or fails is recorded."""
    for name, make in PEERS.items():
        try:
            forward, backward, values = make(xp, arrays, s.causal, report.timed)
            out, *bars = values()
            errors = [error(xp, a, e) for a, e in zip(bars, exact[1:], strict=True)]
        except Exception as reason:
            kind = "" if isinstance(reason, Unavailable) else f"{type(reason).__name__}: "
            record = {"name": name, **s.__dict__, "failed": f"{kind}{reason}"[:200]}
            report.records.append(record)
            print(record, flush=True)
            if report.timed:
                release()
            continue
        report.add(name, s, "forward", forward, error=error(xp, out, exact[0]))
        report.add(name, s, "backward", backward, error=max(errors))
        del forward, backward, values, out, bars
        if report.timed:  # memory that one peer has reserved must not be missing for the next
            release()


def scores(xp: Any, s: Setting, arrays: list[Any], report: Report) -> None:
    """The cost of score functions and masks compared with the plain kernel."""
    *qkv, out_bar = arrays
    slope = xp.linspace(0.01, 0.5, s.heads).astype(np.float32)
    options: dict[str, dict[str, Any]] = {
        "plain": {},
        "ALiBi": {"score": alibi},
        "learned slopes": {"score": learned_slopes, "params": {"slope": slope}},
        "soft cap": {"score": soft_cap},
        "soft cap, fast": {"score": soft_cap, "fast": True},
        "window of 1024": {"mask": window},
    }
    for name, chosen in options.items():

        def forward(chosen: dict[str, Any] = chosen) -> Any:
            return attention(*qkv, causal=s.causal, return_lse=True, **chosen)

        def backward(out: Any, lse: Any, chosen: dict[str, Any] = chosen) -> Any:
            return attention_vjp(*qkv, out, lse, out_bar, causal=s.causal, **chosen)

        begin = time.perf_counter()
        out, lse = forward()
        backward(out, lse)
        if report.timed:
            xp.cuda.Device().synchronize()
        first = time.perf_counter() - begin if report.timed else 0.0
        report.add("symad", s, "forward", forward, score=name, first_call_s=first)
        report.add(
            "symad", s, "backward", lambda call=backward, o=out, m=lse: call(o, m),
            score=name,
        )  # fmt: skip


def second_order(xp: Any, s: Setting, report: Report) -> None:
    """The tangents of all cotangents along (q, k, v), which a Hessian-vector product needs."""
    *qkv, out_bar = draw(xp, s)
    shapes = [a.shape for a in qkv]
    graph = symad.trace(lambda q, k, v: functions.attention(q, k, v, causal=s.causal), shapes)
    moved = symad.pushforward(symad.pullback(graph))
    kernel = lower(moved, backend="cupy" if report.timed else "numpy", dtype=s.dtype)
    values = [*qkv, out_bar, *qkv, out_bar]
    found = kernel(*values)[-3:]
    report.add("symad", s, "second", lambda: kernel(*values))
    try:
        twice = twice_through_math(xp, [*qkv, out_bar], s.causal)
        apart = max(
            float(xp.linalg.norm(wide(a) - wide(b)) / xp.linalg.norm(wide(b)))
            for a, b in zip(found, twice(), strict=True)
        )
    except Exception as reason:
        report.records.append({"name": "torch SDPA math", "direction": "second", **s.__dict__,
                               "failed": f"{type(reason).__name__}: {reason}"[:200]})  # fmt: skip
        return
    report.add("torch SDPA math", s, "second", twice, apart_from_symad=apart)


def long_sequence(xp: Any, report: Report) -> None:
    """64k tokens in fp32: memory stays linear in N."""
    n = 65536 if report.timed else 64
    s = Setting("float32", 64, n, 1, 4, True)
    arrays = draw(xp, s)
    if report.timed:
        xp.get_default_memory_pool().free_all_blocks()
    report.add(
        "symad", s, "forward", lambda: attention(*arrays[:3], causal=True)
    )
    if report.timed:
        pool = xp.get_default_memory_pool()
        report.records[-1]["bytes_held"] = pool.total_bytes()
        report.records[-1]["bytes_of_one_matrix"] = 4 * n * n


# ---------------------------------------------------------------- the run


def settings(quick: bool, timed: bool) -> list[Setting]:
    """16k tokens in all, heads · d = 2048."""
    if not timed:
        return [Setting(t, 16, 48, 1, 2, c) for t in ("float32", "float64") for c in (False, True)]
    lengths = (4096,) if quick else (1024, 4096, 16384)
    widths = (128,) if quick else (64, 128)
    return [
        Setting(dtype, d, n, 16384 // n, 2048 // d, causal)
        for dtype in ("bfloat16", "float32", "float64")
        for d in widths
        for n in lengths
        for causal in (False, True)
    ]


def main() -> int:
    """Run every setting and write one JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/gpu_attention.json"))
    parser.add_argument("--quick", action="store_true", help="d = 128 and N = 4096 only")
    parser.add_argument("--rehearse", action="store_true", help="tiny sizes on the CPU, without times")
    arguments = parser.parse_args()
    timed = not arguments.rehearse
    if timed:
        require_device()
        import cupy as xp
    else:
        xp = np
    report, head = Report([], timed), surroundings(timed)
    for s in settings(arguments.quick, timed):
        arrays = draw(xp, s)
        exact = exact_head(xp, arrays, s.causal)
        ours(xp, s, arrays, exact, report)
        peers(xp, s, arrays, exact, report)
        save(arguments.out, {**head, "records": report.records}, complete=False)
    s = Setting("bfloat16", 128, 16384, 1, 16, True) if timed else settings(False, False)[0]
    scores(xp, s, draw(xp, s), report)
    for dtype, n in (("bfloat16", 4096), ("float32", 4096), ("float64", 2048)):
        tiny = Setting("float32", 16, 48, 1, 2, True)
        second_order(xp, Setting(dtype, 64, n, 1, 16, True) if timed else tiny, report)
        if timed:
            release()
    long_sequence(xp, report)
    result = {**head, "flex_first_call_s": flex_first_call(timed), "records": report.records}
    save(arguments.out, result, complete=True)
    print(f"{len(report.records)} records in {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
