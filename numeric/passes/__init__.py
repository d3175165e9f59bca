"""Graph to graph, before printing: each pass keeps the function and improves its evaluation."""

from __future__ import annotations

from symad.graph import Graph
from symad.numeric.passes.expand import expand
from symad.numeric.passes.hoist import hoist
from symad.numeric.passes.keep import keep
from symad.numeric.passes.slices import apply_before_slicing
from symad.numeric.passes.sums import contract_sums
from symad.stable import stabilize

__all__ = ["apply_before_slicing", "contract_sums", "expand", "hoist", "keep", "prepare", "stabilize"]


def prepare(graph: Graph) -> Graph:
    """All passes in order."""
    return hoist(stabilize(graph))
