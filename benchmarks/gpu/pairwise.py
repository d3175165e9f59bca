"""Kernel sums on a GPU: symad against pykeops and blocked torch, in one run.

Gaussian sums of N = M random points in the unit cube, forward and backward: one million points in three
dimensions, and 10⁵ points in 3, 16, 64 and 128. Times are medians of CUDA events around whole calls; errors
are against float64 on sampled rows. Peers that are not installed are left out.

Usage: python benchmarks/gpu/pairwise.py [--out FILE.json] [--quick]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import sympy as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gpu.report import release, require_device, save, surroundings
from benchmarks.gpu.timing import seconds
from benchmarks.machine import loaded
from symad.gpu.eager import pairwise, pairwise_vjp

SCALE = 0.35


def gaussian(x: Any, y: Any, ell: Any) -> Any:
    return sp.exp(-(x - y).dot(x - y) / (2 * ell**2))


def row_error(out: Any, x: Any, y: Any, b: Any) -> float:
    """Largest error over sampled rows, relative to the largest entry, against float64."""
    import cupy as cp

    rows = cp.linspace(0, len(x) - 1, 64).astype(int)
    exact = [a.astype(cp.float64) for a in (x[rows], y, b)]
    expected = cp.empty(len(rows))
    for k, row in enumerate(exact[0]):
        weights = cp.exp(-((row - exact[1]) ** 2).sum(axis=1) / (2 * SCALE**2))
        expected[k] = weights @ exact[2]
    return float(abs(out[rows] - expected).max() / abs(expected).max())


def ours(x: Any, y: Any, b: Any, repeats: int) -> dict[str, Any]:
    import cupy as cp

    params = {"ell": SCALE}
    out = pairwise(gaussian, x, y, b, params=params)
    _, forward = seconds(lambda: pairwise(gaussian, x, y, b, params=params), repeats)
    bar = cp.ones_like(out)
    _, backward = seconds(lambda: pairwise_vjp(gaussian, x, y, b, out, bar, params=params), repeats)
    return {"forward_s": forward, "backward_s": backward, "error": row_error(out, x, y, b)}


def first_call(dtype: Any) -> float:
    """Seconds of a first call with a new function: tracing, printing, compiling, running."""
    import cupy as cp

    x = cp.random.rand(1000, 3).astype(dtype)
    constant = sp.Rational(time.perf_counter_ns() % 9973, 10007)  # no cached kernel has it
    begin = time.perf_counter()
    pairwise(lambda x, y: constant * sp.exp(-(x - y).dot(x - y)), x, x)
    cp.cuda.Device().synchronize()
    return time.perf_counter() - begin


def blocked_torch(x: Any, y: Any, b: Any, repeats: int) -> dict[str, Any]:
    """exp(−cdist²/2ℓ²) @ b in blocks of rows of at most 2²⁸ pairs."""
    import cupy as cp
    import torch

    tx, ty, tb = (torch.from_dlpack(a) for a in (x, y, b))
    size = max(1, 2**28 // len(y))

    def call() -> Any:
        parts = [
            torch.exp(torch.cdist(part, ty).square_().mul_(-1 / (2 * SCALE**2))) @ tb
            for part in tx.split(size)
        ]
        return torch.cat(parts)

    with torch.cuda.stream(torch.cuda.ExternalStream(cp.cuda.get_current_stream().ptr)):
        out = cp.from_dlpack(call())
        _, forward = seconds(call, max(1, repeats // 3))
    return {"forward_s": forward, "error": row_error(out, x, y, b)}


def keops(x: Any, y: Any, b: Any, repeats: int) -> dict[str, Any]:
    import cupy as cp
    import torch
    from pykeops.torch import LazyTensor

    def tensors(requires_grad: bool) -> list[Any]:
        return [torch.from_dlpack(a).clone().requires_grad_(requires_grad) for a in (x, y, b)]

    def call(tx: Any, ty: Any, tb: Any) -> Any:
        xi, yj = LazyTensor(tx[:, None, :]), LazyTensor(ty[None, :, :])
        weights = (-((xi - yj) ** 2).sum(-1) / (2 * SCALE**2)).exp()
        return (weights @ tb[:, None])[:, 0]

    plain, graded = tensors(False), tensors(True)

    def both() -> Any:
        return torch.autograd.grad(call(*graded).sum(), graded)

    with torch.cuda.stream(torch.cuda.ExternalStream(cp.cuda.get_current_stream().ptr)):
        out = cp.from_dlpack(call(*plain))
        _, forward = seconds(lambda: call(*plain), repeats)
        _, total = seconds(both, repeats)
    return {
        "forward_s": forward,
        "backward_s": total - forward,
        "error": row_error(out, x, y, b),
    }


PEERS = {"symad": ours, "pykeops": keops, "torch in blocks": blocked_torch}
NEEDS = {"symad": "cupy", "pykeops": "pykeops", "torch in blocks": "torch"}


def case(points: int, dimension: int, dtype: str, repeats: int) -> dict[str, Any]:
    import cupy as cp

    rng = cp.random.default_rng(0)
    x, y, b = (rng.random(s).astype(dtype) for s in ((points, dimension),) * 2 + ((points,),))
    result: dict[str, Any] = {"points": points, "dimension": dimension, "dtype": dtype}
    for name, peer in PEERS.items():
        if not loaded(NEEDS[name]):
            continue
        try:
            result[name] = peer(x, y, b, repeats)
        except Exception as error:  # a peer that fails is reported and does not stop the run
            result[name] = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print(result["points"], dimension, dtype, name, result[name], flush=True)
        release()
    return result


def main() -> int:
    """Run every case and write one JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/gpu_pairwise.json"))
    parser.add_argument("--quick", action="store_true", help="10⁴ points only")
    arguments = parser.parse_args()
    require_device()
    cases = [(10**6, 3, "float32", 5), (10**5, 3, "float64", 5)]
    cases += [(10**5, d, "float32", 7) for d in (3, 16, 64, 128)]
    if arguments.quick:
        cases = [(10**4, d, t, 3) for d in (3, 64) for t in ("float32", "float64")]
    measured: list[dict[str, Any]] = []
    first = {t: first_call(t) for t in ("float32", "float64")}
    report = {**surroundings(), "first_call_s": first, "cases": measured}
    for parameters in cases:
        measured.append(case(*parameters))
        save(arguments.out, report, complete=False)
    save(arguments.out, report, complete=True)
    print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
