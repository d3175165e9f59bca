"""Value and gradient of models: symad's NumPy and compiled code against JAX and PyTorch, on one thread.

For each case of `model_cases` and each precision, all values and gradients are compared first;
then every contestant runs in turn in rounds, in one process. The table gives medians of process CPU time, the
ratio to the best peer, and two ratios to the model's matrix products (including those that causal masks hide)
by the faster of two libraries: to these products alone, run in their shapes, and to the floor, which is their
number of operations at the rate of one large product. All of these take part in the rounds. NumPy code
multiplies by NumPy's own library: "same BLAS" is its ratio to the best peer if its products took as long as
with the library of compiled code, which is the peers' library (MKL) if that is installed. The LSTM is also
written by hand in NumPy. Two rows give the least that NumPy code can do (`numpy_floor`): the calls for matrix
products and functions, and these plus one call for each elementwise operation. Set-up (trace, differentiate,
print, compile; JAX's trace and compilation) is wall time, including the first call.

Usage: python benchmarks/arrays/bench_models.py [CASE ...] [--dtype float32] [--rounds 30] [--compile]
       [--json FILE]
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_ENABLE_X64"] = "1"

import argparse  # noqa: E402
import json  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import model_cases  # noqa: E402
import numpy as np  # noqa: E402
from lstm_by_hand import lstm_by_hand  # noqa: E402
from numpy_floor import flops, products, products_alone, ufuncs_alone  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import symad  # noqa: E402
from benchmarks.machine import loaded, measured_on  # noqa: E402
from symad.core.graph import Graph  # noqa: E402
from symad.numeric import lower  # noqa: E402
from symad.numeric.compiled_arrays.blas import product_function  # noqa: E402
from symad.numeric.pipelines import ARRAY_GRAPH, run_graph_passes  # noqa: E402

TOLERANCE = {"float32": 2e-3, "float64": 1e-9}
"""The largest allowed distance of two gradients, relative to their norm."""

Run = Callable[[], Any]


def ours(case: model_cases.Case, dtype: str, backend: str) -> Run:
    """symad: trace, differentiate, print."""
    arrays = {**case.weights, **case.data}
    space = model_cases.for_symad()
    graph = symad.trace(lambda *a: case.loss(space, *a), inputs=[a.shape for a in arrays.values()])
    wrt = list(range(len(case.weights)))
    kernel = lower(symad.value_and_gradient(graph, wrt=wrt), backend=backend, dtype=dtype)
    values = [np.asarray(a, dtype) for a in arrays.values()]
    return lambda: kernel(*values)


def by_jax(case: model_cases.Case, dtype: str) -> Run:
    """jax.jit(jax.value_and_grad)."""
    import jax

    space = model_cases.for_jax(dtype)
    count = len(case.weights)
    both = jax.jit(jax.value_and_grad(lambda *a: case.loss(space, *a), argnums=tuple(range(count))))
    values = [jax.numpy.asarray(a, dtype) for a in {**case.weights, **case.data}.values()]

    def run() -> Any:
        value, gradients = both(*values)
        return jax.block_until_ready((value, *gradients))

    return run


def by_torch(case: model_cases.Case, form: str, dtype: str, compiled: bool) -> Run:
    """torch.autograd.grad, eager or compiled."""
    import torch

    torch.set_num_threads(1)
    kind = getattr(torch, dtype)
    weights = [torch.tensor(np.asarray(a), dtype=kind, requires_grad=True) for a in case.weights.values()]
    data = [torch.tensor(np.asarray(a), dtype=kind) for a in case.data.values()]
    loss = case.torch[form]

    def value(*arrays: Any) -> Any:
        return loss(torch, *arrays)

    function = torch.compile(value) if compiled else value

    def run() -> Any:
        result = function(*weights, *data)
        return (result.detach(), *torch.autograd.grad(result, weights))

    return run


def by_hand(case: model_cases.Case, dtype: str) -> Run:
    """The LSTM in NumPy by hand."""
    values = [np.asarray(a, dtype) for a in {**case.weights, **case.data}.values()]
    (steps, batch, width), (hidden, outputs) = case.data["x"].shape, case.weights["V"].shape
    function = lstm_by_hand(steps, batch, width, hidden, outputs, dtype)
    return lambda: function(*values)


BY_HAND = "NumPy by hand"


def contestants(case: model_cases.Case, dtype: str, compiled: bool) -> dict[str, tuple[Run, float]]:
    """Every contestant by name, with the seconds of its set-up and first result."""
    makers: dict[str, Callable[[], Run]] = {
        "symad": lambda: ours(case, dtype, "numpy"),
        "symad compiled": lambda: ours(case, dtype, "c"),
    }
    if case.name == "lstm":
        makers[BY_HAND] = lambda: by_hand(case, dtype)
    if loaded("jax"):
        makers["jax"] = lambda: by_jax(case, dtype)
    for form in case.torch if loaded("torch") else ():
        makers[f"torch {form}"] = lambda form=form: by_torch(case, form, dtype, False)
        if compiled:
            makers[f"torch {form} compiled"] = lambda form=form: by_torch(case, form, dtype, True)
    made = {}
    for name, make in makers.items():
        start = time.perf_counter()
        run = make()
        run()
        made[name] = (run, time.perf_counter() - start)
    return made


def compare(runs: dict[str, tuple[Run, float]], dtype: str) -> float:
    """The largest distance between symad's results and a peer's; an error if it is too large."""
    reference = [np.asarray(a, np.float64) for a in runs["symad"][0]()]
    worst = 0.0
    for name, (run, _) in runs.items():
        for one, other in zip(reference, run(), strict=True):
            other = np.asarray(other, np.float64)
            distance = np.linalg.norm(one - other) / max(np.linalg.norm(one), 1e-30)
            worst = max(worst, float(distance))
            if not distance <= TOLERANCE[dtype]:
                raise AssertionError(f"{name} differs from symad by {distance:.1e}")
    return worst


def medians(runs: dict[str, tuple[Run, float]], rounds: int) -> dict[str, float]:
    """Median process CPU seconds; contestants take turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for round_ in range(rounds + 3):
        for name, (run, _) in runs.items():
            start = time.process_time()
            run()
            if round_ >= 3:
                times[name].append(time.process_time() - start)
    return {name: statistics.median(t) for name, t in times.items()}


SIZE = 768


def large_products(dtype: str) -> dict[str, Run]:
    """A product of square matrices, by NumPy's library and by that of compiled code (MKL if installed)."""
    a, b = np.random.default_rng(0).normal(size=(2, SIZE, SIZE)).astype(dtype)
    other = product_function(dtype)
    return {"NumPy's product": lambda: a @ b, "compiled code's product": lambda: other(a, b)}


def prepared(case: model_cases.Case) -> Graph:
    """Value and gradient as NumPy code computes them."""
    arrays = {**case.weights, **case.data}
    space = model_cases.for_symad()
    graph = symad.trace(lambda *a: case.loss(space, *a), inputs=[a.shape for a in arrays.values()])
    gradient = symad.value_and_gradient(graph, wrt=list(range(len(case.weights))))
    return run_graph_passes(gradient, ARRAY_GRAPH)


LIBRARIES = ("numpy", "mkl", "jax", "torch")

OURS, THEIRS = "NumPy's alone", "compiled code's alone"
"""The products of a model alone, by two libraries."""

APPLIED, MULTIPLIED = "functions alone", "elementwise alone"
LEAST, MORE = "NumPy's floor", "and elementwise"
"""Lower bounds of NumPy code: calls of products and functions; these and all elementwise operations."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(model_cases.CASES))
    parser.add_argument("--dtype", choices=("float32", "float64", "both"), default="both")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--compile", action="store_true", help="also run torch.compile")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 110)
    machine = measured_on(*LIBRARIES)
    console.print("  ".join(f"{k} {v}" for k, v in machine.items()))
    measures = ("ms", "ratio", "same BLAS", "to products", "to floor", "setup s")
    columns = ("case", "dtype", "contestant", *measures)
    table = Table(*columns, title="value and gradient, one thread")
    rows = []
    for name in options.cases:
        case = model_cases.CASES[name]()
        for dtype in ("float32", "float64") if options.dtype == "both" else (options.dtype,):
            runs = contestants(case, dtype, options.compile)
            compare(runs, dtype)
            graph = prepared(case)
            shapes = products(graph)
            large = {name: (run, 0.0) for name, run in large_products(dtype).items()}
            libraries = {OURS: np.matmul, THEIRS: product_function(dtype)}
            alone = {k: (products_alone(shapes, dtype, f), 0.0) for k, f in libraries.items()}
            calls = zip((APPLIED, MULTIPLIED), ufuncs_alone(graph, dtype), strict=True)
            single = {k: (run, 0.0) for k, run in calls}
            took = medians({**runs, **large, **alone, **single}, options.rounds)
            least = min(took.pop(name) for name in large) * flops(shapes) / (2 * SIZE**3)
            products_by = {name: took.pop(name) for name in alone}
            same, gap = min(products_by.values()), products_by[THEIRS] - products_by[OURS]
            applied, multiplied = (took.pop(name) for name in single)
            peers = [t for k, t in took.items() if not k.startswith("symad") and k != BY_HAND]
            best = min(peers or took.values())
            took[LEAST] = products_by[OURS] + applied
            took[MORE] = took[LEAST] + multiplied
            for k, (contestant, seconds) in enumerate(took.items()):
                setup = runs[contestant][1] if contestant in runs else 0.0
                ratio = seconds / best
                by_numpy = contestant in ("symad", BY_HAND, LEAST, MORE)
                as_theirs = (seconds + gap) / best if by_numpy else ratio
                to_same, to_floor = (f"{seconds / t:.2f}" if least else "-" for t in (same, least))
                table.add_row(
                    name if k == 0 else "", dtype if k == 0 else "", contestant, f"{1e3 * seconds:.2f}",
                    f"{ratio:.2f}", f"{as_theirs:.2f}" if by_numpy else "", to_same, to_floor, f"{setup:.2f}",
                    end_section=k == len(took) - 1,
                )  # fmt: skip
                rows.append(
                    {"case": name, "dtype": dtype, "contestant": contestant, "seconds": seconds,
                     "ratio": ratio, "same BLAS": as_theirs, "products": same, "floor": least, "setup": setup}
                )  # fmt: skip
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps({"versions": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
