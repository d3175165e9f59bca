"""Graphs for the tests of programs: examples of all ops, and the models of docs/listings.md."""

import importlib.util
from pathlib import Path

import numpy as np
import sympy as sp

import symad
from symad.core.graph import Graph, topological
from symad.op_examples import EXAMPLES
from symad.ops.basic.sources import Input
from symad.ops.elementwise.selection import Condition
from symad.saving.saved_ops import load_all_ops

load_all_ops()


def graph_of(node):
    return Graph(tuple(m for m in topological([node]) if isinstance(m.op, Input)), (node,))


def examples_of_ops():
    """Every example of fixed size, with its pushforward and pullback if it has derivatives."""
    found = {}
    for cls, make in EXAMPLES.items():
        for k, node in enumerate(make()):
            graph = graph_of(node)
            if graph.dims or cls.__name__ == "Dimension":
                continue
            found[f"{cls.__name__} {k}"] = graph
            if graph.inputs and not isinstance(node.op, Condition):
                found[f"{cls.__name__} {k} forward"] = symad.pushforward(graph)
                found[f"{cls.__name__} {k} back"] = symad.pullback(graph)
    return found


_spec = importlib.util.spec_from_file_location(
    "make_listings", Path(__file__).resolve().parents[3] / "docs" / "make_listings.py"
)
listings = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(listings)
LISTINGS = listings.LISTINGS
"""The graphs that docs/listings.md shows."""

T, n, d = listings.T, listings.n, listings.d
SIZES = {T: 6, n: 5, d: 3}


def point(graph, seed=0, low=0.1, high=0.9):
    """Values for the inputs of a graph, whose dimensions are those of `SIZES`."""
    rng = np.random.default_rng(seed)
    shapes = [tuple(int(sp.sympify(k).subs(SIZES)) for k in node.shape) for node in graph.input_nodes]
    return [rng.uniform(low, high, shape)[()] for shape in shapes]


def leaves(result):
    """The arrays of nested results; sparse matrices are converted to dense ones."""
    if isinstance(result, (tuple, dict)):
        inner = result.values() if isinstance(result, dict) else result
        return [leaf for part in inner for leaf in leaves(part)]
    return [result.toarray() if hasattr(result, "toarray") else result]


def assert_same(found, wanted, rtol=1e-9):
    """Assert that two results have equal structure and shapes, and equal values up to rounding."""
    found, wanted = leaves(found), leaves(wanted)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert np.shape(a) == np.shape(b)
        scale = max(1.0, float(np.max(np.abs(np.asarray(b, float)), initial=0)))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-2 * rtol * scale)
