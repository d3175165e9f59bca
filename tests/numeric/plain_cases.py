"""Graphs that the tests of programs share: examples of all ops, and the functions of docs/listings.md."""

import importlib
import pkgutil

import numpy as np
import sympy as sp

import symad
from symad import functions, ops
from symad.graph import Graph, topological
from symad.ops.selection import Condition
from symad.ops.sources import Input
from symad.questions import EXAMPLES

for _module in pkgutil.iter_modules(ops.__path__):
    importlib.import_module(f"{ops.__name__}.{_module.name}")

T, n, d = sp.symbols("T n d", integer=True, positive=True)
Matrix = sp.MatrixSymbol


def graph_of(node):
    return Graph(tuple(m for m in topological([node]) if isinstance(m.op, Input)), (node,))


def examples_of_ops():
    """Every example of fixed size, and where it has a derivative its pushforward and pullback."""
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


def rnn():
    def loss(W, U, xs):
        h = functions.scan(lambda h, x: np.tanh(W @ h + U @ x), np.zeros(4), xs)[-1]
        return h @ h

    return symad.trace(loss, [Matrix("W", 4, 4), Matrix("U", 4, 3), Matrix("xs", T, 3)])


def lstm():
    def loss(W, U, b, xs):
        def step(state, x):
            h, c = state
            z = W @ h + U @ x + b
            i, f, o = (functions.sigmoid(z[k : k + 4]) for k in (0, 4, 8))
            c = f * c + i * np.tanh(z[12:])
            return o * np.tanh(c), c

        h, _ = functions.scan(step, (np.zeros(4), np.zeros(4)), xs)
        return h[-1] @ h[-1]

    b = sp.IndexedBase("b", shape=(16,))
    return symad.trace(loss, [Matrix("W", 16, 4), Matrix("U", 16, 3), b, Matrix("xs", T, 3)])


def attention():
    def loss(K, Q, V):
        Y = functions.softmax(Q @ K.T / sp.sqrt(d), 1) @ V
        return (Y * Y).sum()

    return symad.trace(loss, [Matrix(name, n, d) for name in "KQV"])


def arm():
    a, b, px, py = sp.symbols("a b px py")
    x, y = sp.cos(a) + sp.cos(a + b), sp.sin(a) + sp.sin(a + b)
    graph = symad.trace((x - px) ** 2 + (y - py) ** 2, [a, b, px, py])
    return Graph(graph.input_nodes, graph.output_nodes, graph.structure, "arm")


LISTINGS = {
    "rnn": lambda: symad.value_and_gradient(rnn()),
    "lstm": lambda: symad.value_and_gradient(lstm()),
    "attention": lambda: symad.value_and_gradient(attention()),
    "arm": lambda: symad.gradient(arm(), ["a", "b"]),
}
"""The graphs that docs/listings.md shows."""

SIZES = {T: 6, n: 5, d: 3}


def point(graph, seed=0, low=0.1, high=0.9):
    """Values for the inputs of a graph, whose dimensions are those of `SIZES`."""
    rng = np.random.default_rng(seed)
    shapes = [tuple(int(sp.sympify(k).subs(SIZES)) for k in node.shape) for node in graph.input_nodes]
    return [rng.uniform(low, high, shape)[()] for shape in shapes]


def leaves(result):
    """The arrays of nested results, sparse ones dense."""
    if isinstance(result, (tuple, dict)):
        inner = result.values() if isinstance(result, dict) else result
        return [leaf for part in inner for leaf in leaves(part)]
    return [result.toarray() if hasattr(result, "toarray") else result]


def assert_same(found, wanted, rtol=1e-9):
    """Equal up to rounding, in structure and shapes too."""
    found, wanted = leaves(found), leaves(wanted)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert np.shape(a) == np.shape(b)
        scale = max(1.0, float(np.max(np.abs(np.asarray(b, float)), initial=0)))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-2 * rtol * scale)
