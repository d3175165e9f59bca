"""One training step of each model on a GPU: value and all gradients, lowered to CuPy.

Against the same step in torch, eager and compiled, and against symad's NumPy code on the CPU. CUDA
events around whole calls (arrays stay on the device), medians; the error is that of the gradients
against NumPy float64, relative to the largest entry. Peers that are not installed are left out.

Usage: python benchmarks/gpu_models.py [--out gpu_models.json] [--quick]
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import symad
from symad.models.feedforward import FeedForward
from symad.models.lstm import LSTM
from symad.models.parameters import trace_model
from symad.models.transformer import Transformer
from symad.numeric import lower


def seconds(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """(first call, median of the others) by CUDA events around whole calls."""
    import cupy as cp

    begin = time.perf_counter()
    call()
    cp.cuda.Device().synchronize()
    first = time.perf_counter() - begin
    times = []
    for _ in range(repeats):
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, stop) / 1e3)
    return first, statistics.median(times)


def torch_network(torch: Any, p: dict[str, Any], x: Any, y: Any) -> Any:
    z = torch.tanh(x @ p["W1"] + p["b1"])
    z = torch.tanh(z @ p["W2"] + p["b2"])
    return ((z @ p["W3"] - y) ** 2).mean()


def torch_lstm(torch: Any, p: dict[str, Any], x: Any, y: Any) -> Any:
    """The cell written as a loop, gates in symad's order i, f, o, g."""
    width, batch = p["W_h1"].shape[1], x.shape[1]
    h = c = x.new_zeros(batch, width)
    driven = torch.einsum("tbd,ghd->tgbh", x, p["W_x1"]) + p["b1"][:, None]
    states = []
    for z in driven:
        z = z + torch.einsum("bh,gkh->gbk", h, p["W_h1"])
        c = torch.sigmoid(z[1]) * c + torch.sigmoid(z[0]) * torch.tanh(z[3])
        h = torch.sigmoid(z[2]) * torch.tanh(c)
        states.append(h)
    return ((torch.stack(states) @ p["W_hy"].T + p["c_y"] - y) ** 2).mean()


def cases(quick: bool) -> dict[str, tuple[Any, Sequence[Any], Any]]:
    """Name -> (model, data, the loss in torch or None)."""
    rng, scale = np.random.default_rng(0), 16 if quick else 1
    batch, width, steps = 4096 // scale, 1024 // scale, 512 // scale
    network = FeedForward((width, width, width, 10))
    lstm = LSTM(64, 512 // scale, 8, 1)
    text = 512 // scale
    transformer = Transformer(1000, text, 512 // scale, 4, 4)
    tokens, targets = rng.integers(0, 1000, (2, 8, text))
    return {
        "feedforward": (
            network,
            (rng.normal(size=(batch, width)), rng.normal(size=(batch, 10))),
            torch_network,
        ),
        "lstm": (
            lstm,
            (rng.normal(size=(steps, 32, 64)), rng.normal(size=(steps, 32, 8))),
            torch_lstm,
        ),
        "transformer": (transformer, (tokens, targets), None),
    }


def ours(graph: Any, values: Sequence[Any], dtype: str, repeats: int) -> tuple[dict[str, Any], Any]:
    import cupy as cp

    begin = time.perf_counter()
    kernel = lower(graph, backend="cupy", dtype=dtype)
    printed = time.perf_counter() - begin
    arrays = [cp.asarray(v, dtype if np.asarray(v).dtype.kind == "f" else None) for v in values]
    first, median = seconds(lambda: kernel(*arrays), repeats)
    result = {"lower_s": printed, "first_call_s": first, "step_s": median}
    return result, [a.get() for a in kernel(*arrays)]


def torch_step(
    loss: Any, parameters: dict[str, Any], data: Sequence[Any], dtype: str, repeats: int, compiled: bool
) -> dict[str, Any]:
    import torch

    kind = getattr(torch, dtype)
    p = {k: torch.tensor(v, dtype=kind, device="cuda", requires_grad=True) for k, v in parameters.items()}
    tensors = [torch.tensor(v, dtype=kind, device="cuda") for v in data]

    def value(p: dict[str, Any], *data: Any) -> Any:
        return loss(torch, p, *data)

    run = torch.compile(value) if compiled else value
    # torch works on the default stream, on which the events of CuPy are recorded too
    step = lambda: torch.autograd.grad(run(p, *tensors), list(p.values()))  # noqa: E731
    first, median = seconds(step, repeats)
    return {"first_call_s": first, "step_s": median}


def case(name: str, model: Any, data: Sequence[Any], loss: Any, dtype: str, repeats: int) -> dict[str, Any]:
    graph = symad.value_and_gradient(trace_model(model.loss, model.shapes, *data), list(model.shapes))
    rng = np.random.default_rng(1)
    parameters = {k: 0.05 * rng.standard_normal(s) for k, s in model.shapes.items()}
    values = [*parameters.values(), *data]
    cpu = lower(graph)
    begin = time.perf_counter()
    expected = cpu(*values)
    result: dict[str, Any] = {"dtype": dtype, "numpy_float64_s": time.perf_counter() - begin}
    result["symad"], found = ours(graph, values, dtype, repeats)
    largest = max(np.abs(e).max() for e in expected)
    errors = [float(np.abs(f - e).max()) for f, e in zip(found, expected, strict=True)]
    result["error"] = max(errors) / float(largest)
    if loss is not None and importlib.util.find_spec("torch") is not None:
        for peer, compiled in (("torch eager", False), ("torch compiled", True)):
            try:
                result[peer] = torch_step(loss, parameters, data, dtype, repeats, compiled)
            except Exception as error:  # a peer that fails is reported and does not stop the run
                result[peer] = {"failed": f"{type(error).__name__}: {error}"[:300]}
    print(name, json.dumps(result), flush=True)
    return {"model": name, **result}


def main() -> int:
    """Run every model and write one JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="gpu_models.json")
    parser.add_argument("--quick", action="store_true", help="sizes a sixteenth")
    arguments = parser.parse_args()
    import cupy as cp

    repeats = 3 if arguments.quick else 20
    packages = [p for p in ("sympy", "numpy", "torch") if importlib.util.find_spec(p)]
    report = {
        "device": cp.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "date": datetime.date.today().isoformat(),
        "versions": {p: version(p) for p in packages} | {"cupy": cp.__version__},
        "cases": [
            case(name, *parts, dtype, repeats)
            for name, parts in cases(arguments.quick).items()
            for dtype in ("float32", "float64")
        ],
    }
    Path(arguments.out).write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
