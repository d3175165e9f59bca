"""Checking a pattern that a user gives against the derivative itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symad.core.graph import Graph, Node
from symad.sparsity.coloring.color import color
from symad.sparsity.patterns.errors import PatternError
from symad.sparsity.patterns.pattern import Pattern
from symad.sparsity.recovery.colored_products import jacobian_products, recovered

POINTS = 3
"""The number of random points at which missing entries are computed."""


def check_pattern(
    graph: Graph, outputs: Sequence[Node], wrt: Sequence[Node], given: Pattern, detected: Pattern
) -> None:
    """Raise an error if an entry of the derivative that is not zero is missing from the given pattern.

    Only entries of the detected pattern can differ from zero. Those that are missing are computed
    at random points, by compressed products of the detected pattern.

    Raises:
        PatternError: another shape, or an entry is missing; the message names the entry, its value
            and the point.
    """
    if given.shape != detected.shape:
        raise PatternError(
            f"the pattern given has shape {given.shape}, but the derivative of {graph.name} has shape "
            f"{detected.shape}"
        )
    n = given.shape[1]
    keys = detected.rows * n + detected.indices
    missing = np.flatnonzero(~np.isin(keys, given.rows * n + given.indices))
    if not len(missing):
        return
    coloring = color(detected, "column")
    entries = recovered(jacobian_products(outputs, wrt, coloring), coloring)
    probe = Graph(graph.input_nodes, (entries,), None, graph.name)
    rng = np.random.default_rng(0)
    for _ in range(POINTS):
        point = [
            rng.uniform(0.1, 0.9, tuple(map(int, x.shape))) if x.shape else rng.uniform(0.1, 0.9)
            for x in graph.input_nodes
        ]
        values = np.asarray(probe(*point))[missing]
        wrong = np.flatnonzero(values != 0)
        if len(wrong):
            k = missing[wrong[0]]
            raise PatternError(
                f"the pattern given misses entry ({detected.rows[k]}, {detected.indices[k]}), which is "
                f"{values[wrong[0]]:.6g} at a random point; add it, or leave the pattern out"
            )
