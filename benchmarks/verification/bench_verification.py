"""Seconds to certify large models: an identity test takes linear time in the graph.

The cases are an LSTM unrolled over many steps, and blocks of a transformer, with thousands of nodes: the
gradient in reverse mode against that in forward mode, along a direction that is an input itself (a claim
about all parameters at once); and the LSTM's backward pass derived by hand
(`examples/certificates/30_verify_lstm_backward.py`) against symad's, entry by entry.
Tracing and differentiating are not timed; the two sides share the forward pass.

Usage: python benchmarks/verification/bench_verification.py [--runs 3]
"""

import argparse
import importlib.util
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import symad  # noqa: E402
from symad.core.graph import Graph, topological  # noqa: E402
from symad.models.layers.parameters import trace_model  # noqa: E402
from symad.models.transformers.transformer import Transformer  # noqa: E402
from symad.ops.basic.shaping import reshape  # noqa: E402
from symad.verification import Budget  # noqa: E402
from symad.verification.own import bilinear_forward, bilinear_reverse, directions  # noqa: E402


def by_hand():
    """The example of the LSTM derived by hand."""
    path = ROOT / "examples/certificates/30_verify_lstm_backward.py"
    spec = importlib.util.spec_from_file_location("by_hand", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lstm(steps):
    """The loss of an LSTM of two units, unrolled."""
    return symad.trace(by_hand().loss, [(4, 2, 2), (4, 2, 2), (4, 2), (steps, 2)])


def transformer(layers, length):
    """The language-model loss of a small transformer."""
    model = Transformer(7, length, 4, layers, 2, tied=False)
    tokens = np.arange(length) % 7
    return trace_model(lambda p: model.loss(p, tokens, np.roll(tokens, -1)), model.shapes)


def slopes(graph):
    """⟨∇f, v⟩ in reverse and in forward mode."""
    nodes = graph.input_nodes
    value = reshape(graph.output_nodes[0], ())
    v = directions(nodes, "v", {str(s) for s in graph.inputs})
    sides = bilinear_reverse([value], nodes, v), bilinear_forward([value], nodes, v)
    return [Graph((*nodes, *v), (side,)) for side in sides]


def hand_and_own(steps):
    """The LSTM's gradient by hand, and symad's."""
    graph = lstm(steps)
    wrt = list(graph.inputs[:3])
    derived = symad.trace(by_hand().backward, graph.inputs)
    return [symad.gradient(graph, wrt), derived]


CASES = {
    "LSTM, 16 steps, both modes": lambda: slopes(lstm(16)),
    "LSTM, 64 steps, both modes": lambda: slopes(lstm(64)),
    "LSTM, 16 steps, by hand": lambda: hand_and_own(16),
    "LSTM, 64 steps, by hand": lambda: hand_and_own(64),
    "transformer, 2 layers, both modes": lambda: slopes(transformer(2, 6)),
    "transformer, 12 layers, both modes": lambda: slopes(transformer(12, 6)),
}


def main():
    """Time them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    print(f"{'claim':36}  {'nodes':>6}  {'seconds':>8}  {'status':8}  bound")
    for name, make in CASES.items():
        left, right = make()
        count = len(topological(left.output_nodes + right.output_nodes))
        times = []
        for k in range(options.runs):
            start = time.perf_counter()
            certificate = symad.equal(left, right, seed=k, budget=Budget(proof_steps=0))
            times.append(time.perf_counter() - start)
        seconds = statistics.median(times)
        print(f"{name:36}  {count:6}  {seconds:8.2f}  {certificate.status:8}  {certificate.bound:.0e}")
        assert certificate.status in ("proved", "tested"), str(certificate)


if __name__ == "__main__":
    main()
