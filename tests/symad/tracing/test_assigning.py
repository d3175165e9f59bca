"""Assignments to elements of traced values, and NumPy arrays of them; errors name the user's line."""

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import sympy as sp

import symad
from symad import functions
from symad.errors import ShapeError, TraceError
from symad.numeric import lower

n = sp.Symbol("n", integer=True, positive=True)
rng = np.random.default_rng(4)


def items(a):
    a = a.copy()
    a[0] = 2 * a[1]
    a[1:3] = 7
    a[-1] += a[0] ** 2
    return a


def rows(a, v):
    b = np.zeros_like(a)
    b[:, 1] = v
    b[0] = a[1] * 3
    b[[1, 2], 0] = v[:2]
    b[..., -1:] = v[:, None] ** 2
    return b * a


def masks(a):
    b = a * 2
    b[b > 0] = 0.5
    b[np.array([True, False, True, False, False])] = a[:2]
    return b


def traced_positions(a):
    b = a * 2
    b[np.argmax(a)] = a[0]
    return b


def loop(a):
    b = a.copy()
    for k in range(1, 4):
        b[k] = b[k - 1] * b[k]
    return b


def views_that_are_gone(a):
    b = a * 1
    total = b[1:].sum() + b.T.max()
    b[1] = total
    return b


def copies(a):
    b, c = a[[0, 1, 3]], a.reshape(5, 1).copy()
    b[0] = 3
    c[2] = b.sum()
    return np.concatenate([b, c[:, 0]])


def repeated(a):
    b = a * 1
    b[[0, 0, 2]] = a[1:4]
    return b


def arrays(a):
    b = np.array([a, 2 * a])
    b[0, 1] = a[0] * a[2]
    return np.concatenate([np.r_[a, 1.0, a[0]], np.c_[a, a].ravel(), b.ravel(), np.exp(np.asarray(a))])


def objects(a):
    b = np.zeros(5, dtype=object)
    for k in range(5):
        b[k] = a[k] ** k
    return b if b.dtype == object and not isinstance(a, np.ndarray) else b.astype(float)


def polynomial(a):
    return np.polynomial.polynomial.polyval(2.0, a) * np.array([1.0, a[0], a.sum()])


CASES = [
    (items, (5,)), (items, (n,)), (rows, (3, 4), (3,)), (masks, (5,)), (traced_positions, (5,)),
    (traced_positions, (n,)), (loop, (5,)), (views_that_are_gone, (5,)), (copies, (5,)), (repeated, (5,)),
    (arrays, (4,)), (objects, (5,)), (polynomial, (3,)),
]  # fmt: skip


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__} {c[1]}")
def test_values_and_slopes(case):
    """Values are NumPy's, and slopes along a direction are central differences."""
    f, *shapes = case
    points = [rng.normal(size=[5 if d is n else d for d in s]) for s in shapes]
    along = [rng.normal(size=p.shape) for p in points]
    graph = symad.trace(f, shapes)
    for call in (graph, lower(graph), lower(graph, backend="c")):
        np.testing.assert_allclose(call(*points), f(*[p.copy() for p in points]), rtol=1e-13)
    moved = [f(*[p + s * d for p, d in zip(points, along, strict=True)]) for s in (1e-6, -1e-6)]
    slope = symad.pushforward(graph)(*points, *along)[1]
    np.testing.assert_allclose(slope, (moved[0] - moved[1]) / 2e-6, rtol=1e-6, atol=1e-7)
    weights = rng.normal(size=slope.shape)
    bars = lower(symad.pullback(graph))(*points, weights)[1:]
    total = sum((b * d).sum() for b, d in zip(bars, along, strict=True))
    assert total == pytest.approx((weights * slope).sum(), rel=1e-12)


def refused(f, *shapes, match, error=TraceError):
    with pytest.raises(error, match=match):
        symad.trace(f, list(shapes))


def test_what_numpy_would_change_elsewhere_as_well_is_refused():
    def view(a):
        b = a.T
        b[0] = 1
        return b

    def reshaped(a):
        b = np.reshape(a, (4,))
        a[0, 0] = 1.0
        return b

    refused(view, (2, 2), match=r"test_assigning.py, line \d+: b\[0\] = 1.*may be a view.*y = y\.copy\(\)")
    refused(reshaped, (2, 2), match="has a view in use")


def test_values_of_enclosing_functions_are_not_assigned_to():
    def f(a):
        def inner(z):
            a[0] = z
            return a.sum()

        return symad.trace(inner, [()])(a[1])

    def steps(a):
        def step(c, v):
            a[0] = v
            return c

        return functions.scan(step, a[0], a)

    refused(f, (3,), match="belongs to the traced function f, around")
    refused(steps, (3,), match="belongs to the traced function steps, around")


def test_values_that_do_not_fit():
    def wrong(a):
        a[1] = a[:2].copy()
        return a

    def masked(a):
        a[a > 0] = a * 2
        return a

    refused(wrong, (3,), match=r"elements of shape \(\), the value has shape \(2,\)", error=ShapeError)
    refused(masked, (3,), match="needs one number")

    def positions(a):
        b = a * 1
        b[np.argsort(a)] = a
        return b

    refused(positions, (3,), match="needs known positions")
    refused(lambda a: a.__setitem__(7, 1.0), (3,), match=r"shape \(3,\): index 7 is out", error=ShapeError)


def test_what_has_no_value_names_the_line():
    def rounded(a):
        b = 2 * a
        return int(b)

    def branch(a):
        if a > 0:
            return a
        return -a

    place = r"\(test_assigning.py, line \d+: return int\(b\)\)"
    refused(rounded, (), match=rf"int\(\) of a traced value of shape \(\) {place}")
    refused(branch, (), match=r"the truth value .*line \d+: if a > 0:.*np\.where")
    refused(lambda a: np.matrix(a), (40, 40), match="a conversion to a NumPy array of a traced value")
    refused(lambda a: scipy.special.diric(a, 3), (3,), match="special.diric, which .*symad.functions")
    refused(lambda p: p[0].sum(), [[1.0, 2.0], [3.0]], match="the input p is given as nested lists or arrays")


def test_a_list_of_arrays_is_a_group_of_inputs():
    """Arrays of different shapes in one argument keep their own shapes."""
    graph = symad.trace(lambda p: p[0].sum() * p[1][0, 1], [[np.ones(3), np.ones((2, 2))]])
    given = [np.array([1.0, 2.0, 4.0]), np.array([[3.0, 5.0], [7.0, 9.0]])]
    assert graph(given) == lower(graph)(given) == 35.0


def test_arrays_without_elements_keep_their_shape():
    graph = symad.trace(lambda a: a.sum() + np.zeros((0, 2, 4)), [(3,)])
    for call in (graph, lower(graph), lower(graph, backend="c")):
        assert np.shape(call(np.ones(3))) == (0, 2, 4)


# ---- triangular systems -------------------------------------------------------------------------

A = rng.normal(size=(3, 3)) + 3 * np.eye(3)
B, V = rng.normal(size=(3, 2)), rng.normal(size=3)


@pytest.mark.parametrize("lower_", [True, False])
@pytest.mark.parametrize("trans", [0, 1, "T"])
def test_triangular_systems(lower_, trans):
    for unit in (True, False):
        options = {"lower": lower_, "trans": trans, "unit_diagonal": unit}
        for right in (B, V):
            wanted = scipy.linalg.solve_triangular(A, right, **options)
            graph = symad.trace(lambda a, b, o=options: functions.solve_triangular(a, b, **o), [A, right])
            for call in (graph, lower(graph), lower(graph, backend="c")):
                np.testing.assert_allclose(call(A, right), wanted, rtol=1e-12)
            assert np.array_equal(functions.solve_triangular(A, right, **options), wanted)
            along = rng.normal(size=A.shape), rng.normal(size=right.shape)
            moved = [
                scipy.linalg.solve_triangular(A + s * along[0], right + s * along[1], **options)
                for s in (1e-6, -1e-6)
            ]
            slope = symad.pushforward(graph)(A, right, *along)[1]
            np.testing.assert_allclose(slope, (moved[0] - moved[1]) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("lower_", [True, False])
def test_systems_with_a_cholesky_factor(lower_):
    S = A @ A.T

    def f(s, b):
        return functions.cho_solve((np.linalg.cholesky(s) if lower_ else np.linalg.cholesky(s).T, lower_), b)

    graph = symad.trace(f, [S, B])
    np.testing.assert_allclose(graph(S, B), np.linalg.solve(S, B), rtol=1e-12)
    np.testing.assert_allclose(lower(graph)(S, B), np.linalg.solve(S, B), rtol=1e-12)
    np.testing.assert_allclose(f(S, B), np.linalg.solve(S, B), rtol=1e-12)
    slope = symad.gradient(symad.trace(lambda b: f(S, b).sum(), [B]))(B)
    np.testing.assert_allclose(slope, np.linalg.solve(S, np.ones((3, 2))), rtol=1e-12)


def test_views_of_views_of_filled_arrays():
    graph = symad.trace(lambda x: np.ones((3, 4))[1:][0] + np.zeros(6)[1:][1:] * 2 + x, [(4,)])
    np.testing.assert_array_equal(graph(np.arange(4.0)), np.arange(4.0) + 1)
