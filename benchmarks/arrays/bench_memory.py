"""Peak memory of generated value-and-gradient code against the bytes that must be live at one time.

For each case of `model_cases`: the peak that tracemalloc measures during a call, the peak of the
arrays that are live in symad's schedule (`symad.memory` without the inputs, which the caller holds), and
their ratio. A ratio below 1 means that arrays were never stored: arrays of pairs are made in blocks of rows.

Usage: python benchmarks/arrays/bench_memory.py [CASE ...]
"""

from __future__ import annotations

import argparse
import threading
import tracemalloc
from typing import Any

import model_cases
import numpy as np
from rich.console import Console
from rich.table import Table

import symad
from symad.core.graph import Node
from symad.cost import byte_size, live_curve, schedule
from symad.numeric import lower


def needed(graph: symad.Graph) -> int:
    """The peak bytes of live values other than inputs."""
    order = schedule(graph)
    curve = live_curve(graph, order)
    last: dict[Node, int] = {}
    for k, node in enumerate(order):
        for arg in node.args:
            if arg in graph.input_nodes:
                last[arg] = k
    held = [sum(int(byte_size(n)) for n, end in last.items() if end >= k) for k in range(len(order))]
    return max(int(live) - inputs for live, inputs in zip(curve, held, strict=True))


def peak(kernel: Any, values: list[Any]) -> int:
    """The peak of the bytes that a thread's first call allocates; later calls reuse that memory."""
    kernel(*values)
    tracemalloc.start()
    thread = threading.Thread(target=kernel, args=values)
    thread.start()
    thread.join()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(model_cases.CASES))
    options = parser.parse_args()
    table = Table("case", "peak, MB", "live, MB", "ratio", title="float64, value and gradient")
    for name in options.cases:
        case = model_cases.CASES[name]()
        arrays = {**case.weights, **case.data}
        space = model_cases.for_symad()
        loss = case.loss
        graph = symad.trace(
            lambda *a, loss=loss, space=space: loss(space, *a), inputs=[a.shape for a in arrays.values()]
        )
        both = symad.value_and_gradient(graph, wrt=list(range(len(case.weights))))
        found = peak(lower(both), [np.asarray(a, float) for a in arrays.values()])
        bound = needed(both)
        table.add_row(name, f"{found / 1e6:.2f}", f"{bound / 1e6:.2f}", f"{found / bound:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
