"""Whether the claim of a comparison is true at a point, by floating-point numbers."""

import numpy as np

from symad.core.graph import Graph


def value_of(nodes, inputs, point):
    """All elements of some nodes at a point."""
    values = [point[str(n.op.symbol)] for n in inputs]
    return np.concatenate([np.ravel(Graph(inputs, (node,))(*values)) for node in nodes])


def holds(comparison, point):
    """Whether a comparison is true at a point: equal values, and central differences of the function."""
    left, right = comparison.left, comparison.right
    made = value_of(right.output_nodes, right.input_nodes, point)
    claim = comparison.derivative
    if claim is None or claim.kind == "value":
        return np.allclose(value_of(left.output_nodes, left.input_nodes, point), made, rtol=1e-9)
    slopes, h = [], 1e-5
    for node in claim.wrt:
        name = str(node.op.symbol)
        ends = [
            value_of(claim.function, left.input_nodes, {**point, name: point[name] + step})[0]
            for step in (h, -h)
        ]
        slopes.append((ends[0] - ends[1]) / (2 * h))
    return np.allclose(slopes, made, rtol=1e-6, atol=1e-8)
