"""Every op's examples as graphs with values, and scalar functions."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symad import functions
from symad.core.graph import Graph
from symad.op_examples import EXAMPLES
from symad.ops.basic.sources import Input

x, y, z = sp.symbols("x y z", real=True)
RNG = np.random.default_rng(5)


def example_graphs():
    for op_class, make in EXAMPLES.items():
        for k, node in enumerate(make()):
            inputs = tuple(n for n in Graph((), (node,)).nodes if isinstance(n.op, Input))
            dims = {d: 3 + j for j, d in enumerate(sorted(_dims((*inputs, node)), key=str))}
            yield pytest.param(Graph(inputs, (node,)), dims, id=f"{op_class.__name__}-{k}")


def _dims(nodes):
    return {s for n in nodes for d in n.shape if not isinstance(d, int) for s in d.free_symbols}


def example_values(graph, dims):
    """Positive definite matrices and positive numbers: every op has a value there."""
    values = []
    for node in graph.input_nodes:
        shape = tuple(int(d if isinstance(d, int) else d.subs(dims)) for d in node.shape)
        value = RNG.uniform(0.3, 0.9, shape)
        if len(shape) >= 2 and shape[-1] == shape[-2]:
            value = value @ np.swapaxes(value, -1, -2) + shape[-1] * np.eye(shape[-1])
        values.append(value)
    if any(type(n.op).__name__ in ("Gather", "ScatterAdd") for n in graph.nodes):
        values = [
            np.arange(v.size).reshape(v.shape) % 2 if _is_index(graph, node) else v
            for v, node in zip(values, graph.input_nodes, strict=True)
        ]
    return values


def _is_index(graph, node):
    place = {"Gather": 1, "ScatterAdd": 0}
    return any(
        n.args[place[type(n.op).__name__]] is node for n in graph.nodes if type(n.op).__name__ in place
    )


SCALARS = [
    x * y / z - x**3 + 2 * z,
    sp.sin(x) * sp.exp(-y / 3) + sp.sqrt(x**2 + y**2),
    sp.Piecewise((x**2, x > y), (sp.sin(z), sp.And(y > 0, z > 0)), (y, True)),
    sp.Max(x, y, z) - sp.Min(x, y) + sp.Abs(x - y) * sp.sign(z),
    sp.erf(x) + sp.gamma(y) + sp.loggamma(z + 1),
    sp.atan2(x, y) + sp.asinh(z) + sp.acoth(2 + x**2) + sp.sech(y),
    sp.floor(3 * x) + sp.ceiling(y) + sp.Heaviside(z) + sp.Mod(x, 1),
    sp.log(1 + sp.exp(x)) + sp.log(sp.exp(x) + sp.exp(y)) + 1 / (1 + sp.exp(-z)),
    x**y + sp.cbrt(z) + 2**x + sp.pi * sp.E,
    functions.softplus(x) + functions.silu(y) + functions.gelu(z) + functions.relu(x),
]
