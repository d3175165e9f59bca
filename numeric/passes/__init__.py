"""Graph passes, from graph to graph: each keeps the function and improves its evaluation.

Their order is in `symad.numeric.pipelines`, which is the place to start. `algebra` rewrites products and
sums, `memory_layout` the places of parts, `blocking` large arrays and `loops` recurrences; `fixed_data`
serves `given`. `loop` and `block_loop` are the ops into which passes turn scans and work on rows, `bodies`
their bodies.
"""

from __future__ import annotations

from symad.core.graph import Graph
from symad.evaluation.scaled_norms import norms_in_range
from symad.numeric.passes.algebra.definitions import expand
from symad.numeric.passes.algebra.sums_of_products import contract_sums
from symad.numeric.passes.loops.hoist import hoist, keep
from symad.numeric.passes.loops.sum_before_slice import sum_before_slicing
from symad.stable import stabilize

__all__ = ["contract_sums", "expand", "keep", "prepare", "stabilize", "sum_before_slicing"]


def prepare(graph: Graph, dtype: str = "") -> Graph:
    """The graph after the passes of this folder, in order; with norms scaled for numbers of a type."""
    return hoist(norms_in_range(stabilize(expand(graph)), dtype, checked=False))
