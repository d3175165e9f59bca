"""One training step of each model on a GPU: value and all gradients, lowered to CuPy.

It is compared with the same step in torch, eager and compiled, in jax.jit, for the LSTM in cuDNN, and with
symad's NumPy code on the CPU. Times are medians of CUDA events around whole calls (arrays stay on the
device). The error is that of the gradients against NumPy float64, relative to the largest entry. TF32 is off
for the peers. Peers that are not installed are left out.

Usage: python benchmarks/gpu/models.py [--out FILE.json] [--quick]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import symad
from benchmarks.gpu.report import release, require_device, save, surroundings
from benchmarks.gpu.timing import seconds
from benchmarks.machine import loaded
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.parameters import trace_model
from symad.models.sequences.lstm import LSTM
from symad.models.sequences.rnn import RNN
from symad.models.transformers.transformer import Transformer
from symad.numeric import lower


@dataclass(frozen=True)
class Peer:
    """The functions of torch or jax that the losses below need."""

    tanh: Callable[[Any], Any]
    sigmoid: Callable[[Any], Any]
    einsum: Callable[..., Any]
    zeros: Callable[[tuple[int, ...], Any], Any]
    scan: Callable[[Callable[..., Any], Any, Any], Any]


def torch_peer() -> Peer:
    import torch

    def scan(step: Callable[..., Any], state: Any, inputs: Any) -> Any:
        states = []
        for x in inputs:
            state = step(state, x)
            states.append(state[0])
        return torch.stack(states)

    return Peer(torch.tanh, torch.sigmoid, torch.einsum, lambda s, like: like.new_zeros(s), scan)


def jax_peer() -> Peer:
    import jax
    from jax import numpy as jnp

    def scan(step: Callable[..., Any], state: Any, inputs: Any) -> Any:
        def body(state: Any, x: Any) -> Any:
            state = step(state, x)
            return state, state[0]

        return jax.lax.scan(body, state, inputs)[1]

    zeros = lambda shape, like: jnp.zeros(shape, like.dtype)  # noqa: E731
    return Peer(jnp.tanh, jax.nn.sigmoid, jnp.einsum, zeros, scan)


def network_loss(m: Peer, p: dict[str, Any], x: Any, y: Any) -> Any:
    z = m.tanh(x @ p["W1"] + p["b1"])
    z = m.tanh(z @ p["W2"] + p["b2"])
    return ((z @ p["W3"] - y) ** 2).mean()


def rnn_loss(m: Peer, p: dict[str, Any], x: Any, y: Any) -> Any:
    driven = m.einsum("tbd,hd->tbh", x, p["W_xh1"]) + p["b1"]

    def step(state: Any, z: Any) -> Any:
        return (m.tanh(z + state[0] @ p["W_hh1"].T),)

    states = m.scan(step, (m.zeros((x.shape[1], p["W_hh1"].shape[0]), x),), driven)
    return ((states @ p["W_hy"].T + p["c"] - y) ** 2).mean()


def lstm_loss(m: Peer, p: dict[str, Any], x: Any, y: Any) -> Any:
    """The cell written out, gates in symad's order i, f, o, g."""
    driven = m.einsum("tbd,ghd->tgbh", x, p["W_x1"]) + p["b1"][:, None]

    def step(state: Any, z: Any) -> Any:
        h, c = state
        z = z + m.einsum("bh,gkh->gbk", h, p["W_h1"])
        c = m.sigmoid(z[1]) * c + m.sigmoid(z[0]) * m.tanh(z[3])
        return m.sigmoid(z[2]) * m.tanh(c), c

    start = m.zeros((x.shape[1], p["W_h1"].shape[1]), x)
    states = m.scan(step, (start, start), driven)
    return ((states @ p["W_hy"].T + p["c_y"] - y) ** 2).mean()


def cases(quick: bool) -> dict[str, tuple[Any, Sequence[Any], Any]]:
    """For each name, the model, its data, and the loss for the peers (None if the peers do not run it)."""
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
            network_loss,
        ),
        "lstm": (
            lstm,
            (rng.normal(size=(steps, 32, 64)), rng.normal(size=(steps, 32, 8))),
            lstm_loss,
        ),
        "rnn": (
            RNN(64, 512 // scale, 8),
            (rng.normal(size=(steps, 32, 64)), rng.normal(size=(steps, 32, 8))),
            rnn_loss,
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

    torch.backends.cuda.matmul.allow_tf32 = False
    torch._dynamo.reset()
    peer, kind = torch_peer(), getattr(torch, dtype)
    p = {k: torch.tensor(v, dtype=kind, device="cuda", requires_grad=True) for k, v in parameters.items()}
    tensors = [torch.tensor(v, dtype=kind, device="cuda") for v in data]

    def value(p: dict[str, Any], *data: Any) -> Any:
        return loss(peer, p, *data)

    run = torch.compile(value) if compiled else value
    # torch works on the default stream, on which the events of CuPy are recorded too
    step = lambda: torch.autograd.grad(run(p, *tensors), list(p.values()))  # noqa: E731
    first, median = seconds(step, repeats)
    return {"first_call_s": first, "step_s": median}


def jax_step(
    loss: Any, parameters: dict[str, Any], data: Sequence[Any], dtype: str, repeats: int
) -> dict[str, Any]:
    """The jitted step, timed by the clock around blocking calls, because jax has its own streams."""
    import jax

    if jax.default_backend() != "gpu":
        return {"failed": f"jax runs on {jax.default_backend()} here"}
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    peer = jax_peer()
    p = {k: jax.numpy.asarray(v, dtype) for k, v in parameters.items()}
    arrays = [jax.numpy.asarray(v, dtype) for v in data]
    step = jax.jit(jax.value_and_grad(lambda p, *d: loss(peer, p, *d)))
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        jax.block_until_ready(step(p, *arrays))
        times.append(time.perf_counter() - begin)
    return {"first_call_s": times[0], "step_s": statistics.median(times[1:])}


def cudnn_lstm(data: Sequence[Any], width: int, dtype: str, repeats: int) -> dict[str, Any]:
    """torch.nn.LSTM, one fused cuDNN call, with a linear layer; for its time only."""
    import torch

    x, y = (torch.tensor(v, dtype=getattr(torch, dtype), device="cuda") for v in data)
    lstm = torch.nn.LSTM(x.shape[2], width, device="cuda", dtype=x.dtype)
    head = torch.nn.Linear(width, y.shape[2], device="cuda", dtype=x.dtype)
    weights = [*lstm.parameters(), *head.parameters()]
    step = lambda: torch.autograd.grad(((head(lstm(x)[0]) - y) ** 2).mean(), weights)  # noqa: E731
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
    peers: dict[str, Callable[[], dict[str, Any]]] = {}
    if loss is not None and loaded("torch"):
        for kind, compiled in (("torch eager", False), ("torch compiled", True)):
            peers[kind] = partial(torch_step, loss, parameters, data, dtype, repeats, compiled)
        if name == "lstm":
            peers["torch.nn.LSTM (cuDNN)"] = partial(
                cudnn_lstm, data, parameters["W_h1"].shape[1], dtype, repeats
            )
    if loss is not None and loaded("jax"):
        peers["jax.jit"] = partial(jax_step, loss, parameters, data, dtype, repeats)
    for peer, run in peers.items():
        try:
            result[peer] = run()
        except Exception as error:  # a peer that fails is reported and does not stop the run
            result[peer] = {"failed": f"{type(error).__name__}: {error}"[:300]}
        release()
    print(name, json.dumps(result), flush=True)
    return {"model": name, **result}


def main() -> int:
    """Run every model and write one JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/gpu_models.json"))
    parser.add_argument("--quick", action="store_true", help="a sixteenth of the sizes")
    arguments = parser.parse_args()
    require_device()
    repeats = 3 if arguments.quick else 20
    measured: list[dict[str, Any]] = []
    report = {**surroundings(), "cases": measured}
    for name, parts in cases(arguments.quick).items():
        for dtype in ("float32", "float64"):
            measured.append(case(name, *parts, dtype, repeats))
            save(arguments.out, report, complete=False)
    save(arguments.out, report, complete=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
