"""Dense Hessians of models: symad's NumPy code against JAX, PyTorch and CasADi, float64, one thread.

Cases: logistic regression (300 weights, 2000 rows), softmax regression (20 × 10 weights, 1000 rows), and
networks 16-24-8-1 (617 weights, 256 rows) and 10-32-32-4 (1540 weights, 128 rows). All Hessians are compared
first; then contestants take turns in one process. The table gives medians of process CPU time, the ratio of
symad to the best peer, set-up (trace, differentiate, print or compile, first call: wall time), and the peak
memory that symad's first call allocates, divided by the bytes of the Hessian itself.

"batched seeds" is symad without the passes `unit_seeds` and `syrk_products`: all unit seeds in one batch.

Usage: python benchmarks/arrays/bench_hessians.py [CASE ...] [--rounds 15] [--casadi] [--json FILE]
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_ENABLE_X64"] = "1"

import argparse  # noqa: E402
import json  # noqa: E402
import time  # noqa: E402
import tracemalloc  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from itertools import pairwise  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from bench_models import LIBRARIES, Run, medians  # noqa: E402
from model_cases import for_jax, for_symad  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import symad  # noqa: E402
from benchmarks.machine import loaded, measured_on  # noqa: E402
from symad.numeric import lower  # noqa: E402
from symad.numeric.numpy_arrays import lower as lower_numpy  # noqa: E402


@dataclass(frozen=True)
class Case:
    """``loss(xp, *weights, *data)`` for libraries with NumPy's interface, and for PyTorch."""

    loss: Callable[..., Any]
    torch: Callable[..., Any]
    weights: tuple[Any, ...]
    data: tuple[Any, ...]


def logistic() -> Case:
    """Mean of softplus z − y z over the rows z of X w, plus |w|²/20."""
    n, d = 2000, 300

    def loss(xp: Any, w: Any, X: Any, y: Any) -> Any:
        z = X @ w
        return xp.np.mean(xp.softplus(z) - y * z) + 0.05 * xp.np.sum(w**2)

    def natural(torch: Any, w: Any, X: Any, y: Any) -> Any:
        z = X @ w
        return torch.mean(torch.nn.functional.softplus(z) - y * z) + 0.05 * torch.sum(w**2)

    rng = np.random.default_rng(0)
    data = (rng.normal(size=(n, d)), (rng.random(n) < 0.5).astype(float))
    return Case(loss, natural, (rng.normal(size=d) / np.sqrt(d),), data)


def softmax() -> Case:
    """Cross-entropy: the mean of −log p at the labels, p the softmax of the rows of X W + b."""
    n, d, k = 1000, 20, 10

    def loss(xp: Any, W: Any, b: Any, X: Any, y: Any) -> Any:
        return -xp.np.mean(xp.np.sum(y * xp.np.log(xp.softmax(X @ W + b)), axis=1))

    def natural(torch: Any, W: Any, b: Any, X: Any, y: Any) -> Any:
        return -torch.mean(torch.sum(y * torch.log(torch.softmax(X @ W + b, dim=1)), dim=1))

    rng = np.random.default_rng(1)
    weights = (rng.normal(size=(d, k)) / np.sqrt(d), 0.1 * rng.normal(size=k))
    return Case(loss, natural, weights, (rng.normal(size=(n, d)), np.eye(k)[rng.integers(0, k, n)]))


def network(B: int, *widths: int) -> Case:
    """Half the mean of |tanh network − y|²."""

    def forward(tanh: Any, x: Any, weights: Any) -> Any:
        h = x
        for k in range(0, len(weights) - 2, 2):
            h = tanh(h @ weights[k] + weights[k + 1])
        return h @ weights[-2] + weights[-1]

    def loss(xp: Any, *arrays: Any) -> Any:
        *weights, x, y = arrays
        return 0.5 * xp.np.mean(xp.np.sum((forward(xp.np.tanh, x, weights) - y) ** 2, axis=1))

    def natural(torch: Any, *arrays: Any) -> Any:
        *weights, x, y = arrays
        return 0.5 * torch.mean(torch.sum((forward(torch.tanh, x, weights) - y) ** 2, dim=1))

    rng = np.random.default_rng(2)
    weights = []
    for m, n in pairwise(widths):
        weights += [rng.normal(size=(m, n)) / np.sqrt(m), 0.1 * rng.normal(size=n)]
    data = (rng.normal(size=(B, widths[0])), rng.normal(size=(B, widths[-1])))
    return Case(loss, natural, tuple(weights), data)


CASES: dict[str, Callable[[], Case]] = {
    "logistic": logistic,
    "softmax": softmax,
    "network": lambda: network(256, 16, 24, 8, 1),
    "wide network": lambda: network(128, 10, 32, 32, 4),
}


def ours(case: Case, structured: bool = True) -> Run:
    """symad: trace, differentiate, print."""
    arrays = [*case.weights, *case.data]
    space = for_symad()
    graph = symad.trace(lambda *a: case.loss(space, *a), inputs=[a.shape for a in arrays])
    hessian = symad.hessian(graph, wrt=list(range(len(case.weights))))
    passes = lower_numpy.BLOCK_GRAPH
    if not structured:
        lower_numpy.BLOCK_GRAPH = tuple(p for p in passes if p.name not in ("seeds", "grams"))
    try:
        kernel = lower(hessian)
    finally:
        lower_numpy.BLOCK_GRAPH = passes
    return lambda: kernel(*arrays)


def assembled(blocks: Any, sizes: list[int]) -> Any:
    """The blocks of derivatives as one matrix."""
    every = range(len(sizes))
    return np.block([[np.asarray(blocks[i][j]).reshape(sizes[i], sizes[j]) for j in every] for i in every])


def by_jax(case: Case) -> tuple[Run, Run]:
    """jax.jit(jax.hessian), as blocks; the second function assembles them (not timed)."""
    import jax

    space = for_jax("float64")
    function = jax.jit(
        jax.hessian(lambda *a: case.loss(space, *a), argnums=tuple(range(len(case.weights))))
    )
    values = [jax.numpy.asarray(a) for a in (*case.weights, *case.data)]
    sizes = [a.size for a in case.weights]

    def run() -> Any:
        return jax.block_until_ready(function(*values))

    return run, lambda: assembled(run(), sizes)


def by_torch(case: Case) -> tuple[Run, Run]:
    """torch.func.hessian, as blocks."""
    import torch

    torch.set_num_threads(1)
    values = [torch.tensor(a) for a in (*case.weights, *case.data)]
    function = torch.func.hessian(
        lambda *a: case.torch(torch, *a), argnums=tuple(range(len(case.weights)))
    )
    sizes = [a.size for a in case.weights]

    def run() -> Any:
        return function(*values)

    return run, lambda: assembled([[b.numpy() for b in row] for row in run()], sizes)


def by_casadi(case: Case) -> tuple[Run, Run]:
    """CasADi MX; construction takes minutes for networks."""
    import casadi as ca

    class Space:
        class np:
            tanh = staticmethod(ca.tanh)

            @staticmethod
            def mean(x: Any) -> Any:
                return ca.sum1(ca.vec(x)) / (x.shape[0] * x.shape[1])

            @staticmethod
            def sum(x: Any, axis: Any = None) -> Any:
                return ca.sum1(ca.vec(x)) if axis is None else ca.sum2(x)

            log = staticmethod(ca.log)

        softplus = staticmethod(lambda z: ca.log(1 + ca.exp(z)))

    flat = ca.MX.sym("w", sum(a.size for a in case.weights))
    parts, offset = [], 0
    for a in case.weights:
        shape = a.shape if a.ndim == 2 else (a.size, 1)
        part = ca.reshape(flat[offset : offset + a.size], *shape[::-1]).T  # row-major, as NumPy
        parts.append(part)
        offset += a.size
    data = [ca.DM(a) for a in case.data]
    rows = case.data[0].shape[0]
    biased = [ca.repmat(p.T, rows, 1) if a.ndim == 1 and len(parts) > 1 else p
              for p, a in zip(parts, case.weights, strict=True)]  # fmt: skip
    matrix, _ = ca.hessian(case.loss(Space, *biased, *data), flat)
    function = ca.Function("h", [flat], [matrix])
    point = np.concatenate([a.ravel() for a in case.weights])
    return (lambda: function(point)), (lambda: np.asarray(function(point)))


def peak(case: Case, structured: bool) -> int:
    """The peak of the bytes that the first call of symad's code allocates, including its result."""
    run = ours(case, structured)
    tracemalloc.start()
    run()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--casadi", action="store_true", help="also CasADi (minutes of construction)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    console = Console()
    machine = measured_on(*LIBRARIES)
    console.print("  ".join(f"{k} {v}" for k, v in machine.items()))
    columns = ("case", "contestant", "ms", "ratio", "setup s", "peak / n² bytes")
    table = Table(*columns, title="dense Hessians, float64, one thread")
    rows = []
    for name in options.cases:
        case = CASES[name]()
        makers: dict[str, Callable[[], Any]] = {
            "symad": lambda case=case: (ours(case),) * 2,
            "symad, batched seeds": lambda case=case: (ours(case, False),) * 2,
        }
        if loaded("jax"):
            makers["jax"] = lambda case=case: by_jax(case)
        if loaded("torch"):
            makers["torch"] = lambda case=case: by_torch(case)
        if options.casadi and name not in ("softmax",) and loaded("casadi"):
            makers["casadi"] = lambda case=case: by_casadi(case)
        runs: dict[str, tuple[Run, float]] = {}
        values: dict[str, Any] = {}
        for contestant, make in makers.items():
            start = time.perf_counter()
            run, whole = make()
            run()
            runs[contestant] = (run, time.perf_counter() - start)
            values[contestant] = whole()
        for contestant, value in values.items():
            distance = np.linalg.norm(value - values["symad"]) / np.linalg.norm(value)
            if not distance < 1e-12:
                raise AssertionError(f"{name}: {contestant} differs from symad by {distance:.1e}")
        took = medians(runs, options.rounds)
        peers = [t for k, t in took.items() if not k.startswith("symad")]
        best = min(peers, default=took["symad"])
        for k, (contestant, seconds) in enumerate(took.items()):
            setup = runs[contestant][1]
            own = contestant.startswith("symad")
            memory = peak(case, contestant == "symad") / values["symad"].nbytes if own else None
            table.add_row(
                name if k == 0 else "", contestant, f"{1e3 * seconds:.2f}", f"{seconds / best:.3f}",
                f"{setup:.2f}", f"{memory:.2f}" if memory else "", end_section=k == len(took) - 1,
            )  # fmt: skip
            rows.append(
                {"case": name, "contestant": contestant, "seconds": seconds, "ratio": seconds / best,
                 "setup": setup, "peak": memory}
            )  # fmt: skip
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps({"versions": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
