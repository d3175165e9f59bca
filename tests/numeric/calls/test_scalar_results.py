"""A result without axes is a number, Python's or NumPy's, and never an array: of graphs and every backend."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.graph import Graph, TupleOf, topological
from symad.numeric import lower
from symad.op_examples import EXAMPLES
from symad.ops.basic.shaping import flatten, slice_axis
from symad.ops.basic.shaping import reshape as reshaped
from symad.ops.basic.sources import Input
from symad.ops.elementwise.selection import Condition
from symad.saving.saved_ops import load_all_ops

load_all_ops()

WAYS = {
    "numpy": {},
    "float32": {"dtype": "float32"},
    "plain": {"style": "plain"},
    "packed": {"packed": True},
    "runs": {"backend": "runs"},
    "c": {"backend": "c"},
    "packed c": {"backend": "c", "packed": True},
}


def inputs_of(node):
    return tuple(n for n in topological([node]) if isinstance(n.op, Input))


def first_element(node):
    flat = flatten(node)
    return reshaped(slice_axis(flat, 0, 0, 1), ())


def graph_of(node):
    return Graph(inputs_of(node), (node,), None, "f")


NODES = {f"{cls.__name__} {k}": n for cls, make in EXAMPLES.items() for k, n in enumerate(make())}
GRAPHS = {
    name: graph_of(node if node.shape == () else first_element(node))
    for name, node in NODES.items()
    if inputs_of(node) and not graph_of(node).dims and 0 not in node.shape and name != "CompressedRows 0"
}
SMOOTH = [name for name in GRAPHS if not isinstance(NODES[name].op, Condition) and NODES[name].shape == ()]


def point(graph):
    rng = np.random.default_rng(0)
    return [rng.uniform(0.1, 0.9, n.shape)[()] for n in graph.input_nodes]


def numbers(result):
    """All results, one after the other."""
    return [part for r in result for part in numbers(r)] if isinstance(result, tuple) else [result]


def are_numbers(graph, result):
    flat = numbers(result)
    ranks = [node.ndim for node in graph.output_nodes]
    assert len(flat) == len(ranks)
    for value, rank in zip(flat, ranks, strict=True):
        assert isinstance(value, np.ndarray if rank else (bool, int, float, np.generic)), type(value)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("way", ["numpy", "plain"])
def test_an_element_of_every_op(name, way):
    graph = GRAPHS[name]
    are_numbers(graph, graph(*point(graph)))
    are_numbers(graph, lower(graph, **WAYS[way])(*point(graph)))


@pytest.mark.parametrize("name", SMOOTH)
def test_values_and_gradients_of_every_op(name):
    graph = symad.value_and_gradient(GRAPHS[name])
    are_numbers(graph, graph(*point(graph)))
    are_numbers(graph, lower(graph)(*point(graph)))
    are_numbers(graph, lower(graph, dtype="float32")(*point(graph)))


def implemented(v):
    return np.where(np.asarray(v) > 0, v, np.asarray(0.0))


x, y = sp.symbols("x y", real=True)
A_USERS = symad.register_function("users_ramp", implemented)

OF_NUMBERS = {
    "arithmetic": (sp.sin(x) * y + x**2, (0.5, 2.0)),
    "a choice": (sp.Piecewise((x, x > y), (y**2, True)), (0.5, 2.0)),
    "a choice where a branch overflows": (sp.Piecewise((sp.exp(x * 1000), x < y), (x, True)), (3.0, 2.0)),
    "a largest one": (sp.Max(x, y), (0.5, 2.0)),
    "a function of SciPy": (sp.besselj(0, x) + sp.erf(y), (0.5, 2.0)),
    "a function of a user": (A_USERS(x), (0.5,)),
    "several": ([x + y, sp.Piecewise((x, x > y), (y, True)), sp.Integer(3)], (0.5, 2.0)),
    "slopes": (symad.gradient(sp.Piecewise((x**2, x > y), (x * y, True)), (x, y)), (0.5, 2.0)),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("way", ["graph", *WAYS])
def test_functions_of_numbers(name, way):
    f, at = OF_NUMBERS[name]
    graph = symad.trace(f)
    kernel = graph if way == "graph" else lower(f, **WAYS[way])
    for values in (at, [np.array(v) for v in at], [np.float64(v) for v in at]):
        result = kernel(np.array(values)) if "packed" in way else kernel(*values)
        if "packed" in way and isinstance(graph.structure, TupleOf):
            assert np.shape(result) == (len(graph.output_nodes),)
        else:
            are_numbers(graph, result)


@pytest.mark.sample(3)
@pytest.mark.parametrize("way", ["graph", "numpy", "float32", "plain", "packed", "c", "packed c"])
def test_functions_of_arrays(way):
    def f(v, s):
        last = functions.fold(lambda c, u: np.sin(c) + u, s, v)
        chosen = np.where(s > 0, v[0] * 2, last)
        return (
            functions.logsumexp(v),
            chosen,
            v.max(),
            (v[:1] * s).reshape(()),
            last,
            np.linalg.det(np.outer(v, v)),
        )

    v, s = np.array([0.5, -1.0, 2.0]), 0.7
    for k in range(6):
        graph = symad.trace(lambda v, s, k=k: f(v, s)[k], [(3,), ()])
        kernel = graph if way == "graph" else lower(graph, **WAYS[way])
        are_numbers(graph, kernel(np.array([*v, s])) if "packed" in way else kernel(v, s))


@pytest.mark.parametrize("backend", ["numpy", "c", "runs"])
def test_truth_values_are_true_or_false(backend):
    """So that masks of points select, and ~ negates: one result beside a number, and one alone."""
    x, y = sp.symbols("x y", real=True)
    graph = symad.trace(lambda x, y: (x > y, x * y, (x > 0) & (y > 0)), inputs=[x, y])
    kernel = lower(graph, backend=backend)
    for results in (kernel(2.0, 1.0), graph(2.0, 1.0)):
        assert [np.asarray(r).dtype.kind for r in results] == ["b", "f", "b"] and results == (True, 2.0, True)
    points = np.array([-1.0, 0.5, 2.0]), np.array([-2.0, 1.0, 1.0])
    larger, product, positive = kernel(*points)
    assert larger.dtype == positive.dtype == bool and product.dtype == float
    assert larger.tolist() == [True, False, True] and positive.tolist() == [False, True, True]
    assert isinstance(lower(symad.trace(lambda x: x > 0, inputs=[x]), backend=backend)(0.0), (bool, np.bool_))


@pytest.mark.parametrize("given", [2.0, np.array(2.0), np.float32(2), 2])
def test_scalar_inputs_of_array_code_are_scalars_of_numpy(given):
    """NumPy multiplies its scalars in half the time that arrays without axes need."""
    kernel = lower(symad.trace(lambda x, s: np.sum(x) * s, [(3,), ()]))
    checked = kernel.function.__globals__["_checked"]
    assert type(checked(np.ones(3), given)[1]) is np.float64
    assert kernel(np.ones(3), given) == 6
