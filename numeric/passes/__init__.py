"""Graph passes, from graph to graph: each keeps the function and improves its evaluation.

Their order is in `symad.numeric.pipelines`, which is the place to start. `algebra` rewrites products and
sums, `memory_layout` the places of parts, `blocking` large arrays and `loops` recurrences; `fixed_data`
serves `given`. `loop` and `bodies` have the ops into which passes turn scans and work on rows.
"""

from __future__ import annotations

from symad import stable
from symad.core.graph import Graph
from symad.evaluation.scaled_norms import norms_in_range
from symad.numeric.box import current_box
from symad.numeric.passes.algebra.definitions import expand
from symad.numeric.passes.algebra.sums_of_products import contract_sums
from symad.numeric.passes.in_box import decide, exact_difference
from symad.numeric.passes.loops.hoist import hoist, keep
from symad.numeric.passes.memory_layout.pads import sum_before_slicing

__all__ = ["contract_sums", "expand", "keep", "prepare", "stabilize", "sum_before_slicing"]


def stabilize(graph: Graph) -> Graph:
    """The graph in its stable forms; differences of inputs that are near in the box count as exact."""
    return stable.stabilize(graph, exact_difference) if current_box() else stable.stabilize(graph)


def prepare(graph: Graph, dtype: str = "") -> Graph:
    """The graph after the passes of this folder, in order; with norms scaled for numbers of a type."""
    return hoist(decide(norms_in_range(stabilize(expand(graph)), dtype, checked=False), dtype))
