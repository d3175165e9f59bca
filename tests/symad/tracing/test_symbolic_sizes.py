"""NumPy's constructors in traced functions, of sizes that are symbols: the arrays that NumPy itself makes."""

import re

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import ShapeError, TraceError
from symad.numeric import lower

n = sp.Symbol("n", integer=True, positive=True)
POINT = np.random.default_rng(0).standard_normal((4, 4))

CONSTRUCTORS = {
    "eye": lambda a: np.eye(a.shape[0]) + a,
    "eye of two sizes": lambda a: np.eye(a.shape[0], a.shape[1], dtype=float) * a,
    "eye above": lambda a: np.eye(a.shape[0], k=1) @ a,
    "eye below, with columns": lambda a: np.eye(a.shape[0], 7, -2) * a[:, :1],
    "identity": lambda a: np.identity(a.shape[0]) @ a,
    "tri": lambda a: np.tri(a.shape[0]) * a,
    "tri below": lambda a: np.tri(a.shape[0], k=-1) * a,
    "zeros": lambda a: np.zeros(2 * a.shape[0] + 1) + a.sum(),
    "ones": lambda a: np.ones(a.shape[0]) @ a,
    "ones of a list": lambda a: np.ones([a.shape[0], 3]).T @ a,
    "full": lambda a: np.full(a.shape, 2.5) * a,
    "full of a traced value": lambda a: np.full(a.shape[0], a[0, 0]) @ a,
    "arange": lambda a: np.arange(a.shape[0]) @ a,
    "arange from": lambda a: np.arange(2, a.shape[0]) @ a[2:],
    "linspace": lambda a: np.linspace(-1, 1, a.shape[0]) @ a,
    "linspace without its end": lambda a: np.linspace(0, 1, a.shape[0], endpoint=False) @ a,
    "linspace between traced values": lambda a: np.linspace(a[0, 0], a[1, 1], a.shape[0]) @ a,
    "linspace between vectors": lambda a: np.linspace(a[0], 1, a.shape[0] + 1),
    "filled": lambda a: filled(a),
}


def filled(a):
    out = np.zeros(a.shape[0])
    out[0] = a[0, 1]
    return out


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_symbolic_sizes_give_numpys_arrays(name):
    function = CONSTRUCTORS[name]
    graph = symad.trace(function, [sp.MatrixSymbol("A", n, n)])
    for point in (POINT, POINT[:1, :1] if "[1" not in name and name not in REACH else POINT[:2, :2]):
        np.testing.assert_allclose(graph(point), function(point), rtol=1e-14)
        np.testing.assert_allclose(lower(graph)(point), function(point), rtol=1e-14)


REACH = ("arange from", "linspace between traced values", "filled")
"""Those that read beyond a matrix of one element."""


def test_the_gradient_of_an_identity_of_symbolic_size():
    graph = symad.trace(lambda a: np.linalg.inv(np.eye(a.shape[0]) + a).trace(), [sp.MatrixSymbol("A", n, n)])
    inverse = np.linalg.inv(np.eye(4) + POINT)
    np.testing.assert_allclose(symad.gradient(graph, "A")(POINT), -(inverse @ inverse).T, rtol=1e-11)


def test_like_a_traced_value():
    graph = symad.trace(lambda v: np.eye(3, like=v) @ v + np.ones(3, like=v), [(3,)])
    assert np.array_equal(graph([1.0, 2.0, 3.0]), [2.0, 3.0, 4.0])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: np.empty(a.shape), "np.empty of the symbolic size"),
        (lambda a: np.zeros(a.shape[0] * 1.5), r"1.5\*n is not a size"),
        (lambda a: np.zeros(a.shape[0] / 2), "n/2 is not a size: .* quotients round down by //"),
        (lambda a: np.ones(-a.shape[0]), "-n is not a size"),
        (lambda a: np.arange(0, a.shape[0], 2), "np.arange up to a symbolic size takes step=1, not 2"),
        (lambda a: np.eye(a.shape[0], dtype=int), r"np.eye\(..., dtype=<class 'int'>\) is not supported"),
        (lambda a: np.hanning(a.shape[0]), "sizes as numbers with one that is a symbol"),
        (lambda a: range(a.shape[0]), "sizes as numbers with one that is a symbol"),
        (lambda a: sum(a[k] for k in range(a.shape[0])), r"_sizes.py, line \d+: .*functions.scan"),
        (lambda a: np.indices(a.shape), "sizes as numbers with one that is a symbol"),
        (lambda a: np.random.default_rng(0).random(a.shape[0]), "sizes as numbers with one that is a symbol"),
        (lambda a: np.random.rand(a.shape[0]), "sizes as numbers with one that is a symbol|np.empty"),  # noqa: NPY002
    ],
)
def test_what_is_not_supported_is_named(function, message):
    """Functions of np.random call np.empty from compiled code and would read a traced value as an array."""
    with pytest.raises(TraceError, match=message):
        symad.trace(function, [sp.MatrixSymbol("A", n, n)])


GAPS = np.where(POINT > 0.8, np.nan, POINT)

STATISTICS = {
    "nanmean": lambda a: np.nanmean(a),
    "nanmean of columns": lambda a: np.nanmean(a, axis=0, keepdims=True),
    "nanmean of some": lambda a: np.nanmean(a, axis=1, where=a < 0.5),
    "nansum of some": lambda a: np.nansum(a, axis=1, where=a < 0.5),
    "nanprod": lambda a: np.nanprod(a, axis=1),
    "nanvar": lambda a: np.nanvar(a, axis=0, ddof=1),
    "nanmax": lambda a: np.nanmax(a, axis=0),
    "round": lambda a: a.round(1),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_missing_values_in_arrays_of_symbolic_sizes(name):
    assert np.isnan(GAPS).any()
    graph = symad.trace(STATISTICS[name], [sp.MatrixSymbol("A", n, n)])
    for made in (graph, lower(graph)):
        np.testing.assert_allclose(made(GAPS), STATISTICS[name](GAPS), rtol=1e-14)


@pytest.mark.parametrize("name", ["median", "quantile", "percentile"])
def test_a_refused_length_names_the_function_that_was_called(name):
    function = getattr(np, name)
    with pytest.raises(ShapeError, match=rf"np\.{name} needs axes of known length, not n"):
        symad.trace(lambda v: function(v) if name == "median" else function(v, 0.5), [(n,)])


# ---- positions that depend on sizes -------------------------------------------------------------------

OUTSIDE = {
    "n": (lambda x: x[n], "index n is out of range for an axis of length n"),
    "the shape": (lambda x: x[x.shape[0]], "index n is out of range for an axis of length n"),
    "2 n": (lambda x: x[2 * n], "index 2*n is out of range"),
    "from the end": (lambda x: x[-n - 1], "index -n - 1 is out of range"),
    "of a part": (lambda x: x[: n - 1][n - 1], "index n - 1 is out of range for an axis of length n - 1"),
    "take": (lambda x: np.take(x, n), "index n is out of range"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_positions_outside_for_all_sizes_are_refused_by_trace(name):
    f, message = OUTSIDE[name]
    with pytest.raises(ShapeError, match=re.escape(message)):
        symad.trace(f, [(n,)])


INSIDE = [
    lambda n, m: np.s_[-n], lambda n, m: np.s_[n - 1], lambda n, m: np.s_[-m], lambda n, m: np.s_[-n:],
    lambda n, m: np.s_[-m:], lambda n, m: np.s_[:-m], lambda n, m: np.s_[n : n + 1],
    lambda n, m: np.s_[1 : n + 2], lambda n, m: np.s_[-n - 1 :], lambda n, m: np.s_[n + 3 :: -1],
    lambda n, m: np.s_[n - 2 :: -1], lambda n, m: np.s_[: -n - 1 : -1], lambda n, m: np.s_[-1 : -n - 5 : -1],
    lambda n, m: np.s_[-n::2], lambda n, m: np.s_[m:n], lambda n, m: np.s_[-n - 2 : -n - 1],
    lambda n, m: np.s_[n + 1 : n + 3],
]  # fmt: skip


@pytest.mark.parametrize("key", INSIDE, ids=lambda key: str(key(n, sp.Symbol("m"))))
def test_positions_with_sizes_are_those_of_numpy(key):
    m = sp.Symbol("m", integer=True, positive=True)
    values = np.arange(1.0, 5.0)
    g = symad.trace(lambda x, y: x[key(n, m)] + 0 * y.sum(), [(n,), (m,)])
    expected = values[key(4, 2)]
    got = np.asarray(g(values, np.ones(2)))
    assert got.shape == np.shape(expected) and np.array_equal(got, expected)


DECIDED_BY_SIZE = {
    "equal": lambda v: v * 2 if v.shape[0] == 1 else v,
    "unequal": lambda v: v * 2 if v.shape[0] != 1 else v,
    "odd": lambda v: v * 2 if v.shape[0] % 2 else v,
    "among": lambda v: v * 2 if v.shape[0] in (2, 3) else v,
    "a shape": lambda v: v * 2 if v.shape == (3,) else v,
    "in an array": lambda v: np.where(v.shape[0] % 101 == 100, 2.0, 1.0) * v,
    "two sizes": lambda v, w: v.sum() if v.shape == w.shape else w.sum(),
}


@pytest.mark.parametrize("name", DECIDED_BY_SIZE)
def test_what_is_decided_by_a_size_is_no_function_of_all_sizes(name):
    """SymPy's n == 1 is False, so that what is right for n = 1 was lost from a graph for all n."""
    m = sp.Symbol("m", integer=True, positive=True)
    f = DECIDED_BY_SIZE[name]
    shapes = [(n,), (m,)][: f.__code__.co_argcount]
    with pytest.raises(TraceError, match="decides by a comparison"):
        symad.trace(f, shapes)
    assert symad.trace(f, [(3,)] * len(shapes)).output_nodes


def test_what_is_known_of_sizes_decides():
    def f(v, w):
        assert v.shape == w.shape and v.shape[0] != 0 and v.shape[0] + 1 != v.shape[0] and v.shape[0]
        return v + w if n == v.shape[0] else v

    assert len(symad.trace(f, [(n,), (n,)]).input_nodes) == 2
    assert (n == 1) is False and bool(n % 2)  # SymPy's own answers, elsewhere
