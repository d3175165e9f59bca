"""Compiled array code: the loss of an LSTM network and its gradient, as NumPy code and with loops in C.

The same graph is printed twice. The NumPy version runs one Python statement for each operation of each step.
The compiled version runs the whole recurrence, forward and backward, in two C functions that call BLAS for
the matrix products. Without a C compiler, backend "c" gives a warning and runs in NumPy.
Run: python examples/speed/33_compiled.py [--hidden 48] [--steps 80]
"""

import argparse
import time

import numpy as np

import symad
from symad.models.layers.parameters import trace_model
from symad.models.sequences.lstm import LSTM
from symad.numeric import lower


def milliseconds(kernel, values) -> float:
    """The shortest of ten calls."""
    times = []
    for _ in range(10):
        start = time.perf_counter()
        kernel(*values)
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=48)
    parser.add_argument("--steps", type=int, default=80)
    options = parser.parse_args()

    model = LSTM(8, options.hidden, 4)
    xs, ys = np.random.default_rng(0).normal(size=(2, options.steps, 8))
    data = xs, ys[:, :4]
    graph = trace_model(model.loss, model.shapes, *data)
    gradient = symad.value_and_gradient(graph, list(model.shapes))
    values = [*model.init().values(), *data]

    print(f"an LSTM network with {options.hidden} units over {options.steps} steps")
    results = {}
    for backend in ("numpy", "c"):
        start = time.perf_counter()
        kernel = lower(gradient, backend=backend)
        setup = time.perf_counter() - start
        results[backend] = kernel(*values)
        call = milliseconds(kernel, values)
        print(f"{backend:>6}: {call:6.2f} ms a call, {setup:.2f} s to print and compile")
    for one, other in zip(results["c"], results["numpy"], strict=True):
        assert np.allclose(one, other, rtol=1e-10, atol=1e-12)
    print("value and all gradients agree to 1e-10")

    if kernel.c_source:
        call = next(line for line in kernel.source.splitlines() if "run_loop(_" in line)
        step = kernel.c_source.partition("int loop_1(")[2].partition("state = y0;")[0]
        print(f"\nthe recurrence is one call:\n{call}")
        print("and one step of it begins:")
        print("\n".join(step.partition("for (long long t")[2].splitlines()[1:12]))


if __name__ == "__main__":
    main()
