"""Lowering: a graph to a callable with readable source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from symad.errors import LoweringError
from symad.numeric.backends import load_backend
from symad.numeric.kernel import Kernel, Origin
from symad.numeric.passes.cotangents import join_cotangents
from symad.numeric.passes.definitions import write_definitions
from symad.numeric.pipelines import PassReport
from symad.numeric.plain import lower_plain
from symad.ops.captured import check_closed
from symad.ops.sparse import CompressedRows
from symad.pausing import without_collecting
from symad.tracing import as_graph

DTYPES = ("float64", "float32")
STYLES = ("fast", "plain")


@without_collecting
def lower(
    f: Any,
    backend: str = "numpy",
    dtype: Any = "float64",
    packed: bool = False,
    style: str = "fast",
    log: Callable[[str], None] | None = None,
) -> Kernel:
    """``f`` as fast code: a callable with ``.source`` and ``.save(path)``.

    Args:
        f: what `symad.trace` takes; a Graph keeps its order of inputs.
        backend: "numpy"; "c", compiled for this machine (scalar graphs as one C function, array graphs as
            NumPy code with compiled kernels and loops); "runs" for large scalar graphs; "cupy" on a GPU.
        dtype: "float64" or "float32" (on a GPU also the half precisions).
        packed: the kernel takes one flat vector of all inputs, in order, and returns flat vectors:
            for scipy.optimize, and for hundreds of inputs.
        style: "fast"; or "plain", for backend "numpy": one line for each mathematical step, nothing done for
            speed, to read, to teach and to check the fast code against.
        log: called with a line for each pass of style "plain", such as ``print``.

    Raises:
        LoweringError: unknown backend, dtype or style, or an op without a form there.
    """
    graph = as_graph(f)
    check_closed(graph, "lower")
    if style not in STYLES or (style == "plain" and backend != "numpy"):
        raise LoweringError(
            f"style={style!r} with backend={backend!r}: the styles are {', '.join(map(repr, STYLES))}, and "
            "'plain' is printed for backend 'numpy'"
        )
    name = str(dtype) if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in DTYPES and backend != "cupy":
        raise LoweringError(f"dtype={name!r} is not one of {', '.join(map(repr, DTYPES))}")
    sparse = any(isinstance(output.op, CompressedRows) for output in graph.output_nodes)
    if packed and sparse and len(graph.output_nodes) > 1:
        raise LoweringError(
            "packed=True returns one flat vector, which cannot hold a sparse matrix: lower it alone"
        )
    origin = Origin(graph, backend, name, (("packed", packed), ("style", style)))
    if style == "plain":
        report: list[PassReport] = []
        plain = lower_plain(graph, name, packed, report)
        for line in report if log is not None else ():
            log(str(line))
        return replace(plain, origin=origin)
    module: Any = load_backend(backend)
    kernel: Kernel = module.lower(join_cotangents(write_definitions(graph)), name, packed)
    return replace(kernel, origin=origin)
