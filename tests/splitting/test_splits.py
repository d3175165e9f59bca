"""Functions that split over their data and functions that do not: losses, derivatives, softmax, bad input."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.graph import Graph
from symad.errors import ShapeError
from symad.ops.sparse.csr import compressed_rows
from tests.splitting.whole_and_parts import agree, is_wrong_at_its_witness

n, m, d = sp.symbols("n m d", integer=True, positive=True)
X, Y, W = sp.MatrixSymbol("X", n, d), sp.MatrixSymbol("y", n, 1), sp.MatrixSymbol("w", d, 1)
OVER = {"X": 0, "y": 0}


def sse(x, y, w):
    return ((x @ w - y) ** 2).sum()


def mse(x, y, w):
    return ((x @ w - y) ** 2).mean()


def logistic(x, y, w):
    return (np.logaddexp(0, x @ w) - y * (x @ w)).sum()


def penalised(x, y, w):
    return logistic(x, y, w) + (w**2).sum()


SPLIT = {
    "sum of squares": (sse, "sum"),
    "mean of squares": (mse, "mean"),
    "mean and penalty": (lambda x, y, w: mse(x, y, w) + (w**2).sum(), "mean"),
    "logistic": (logistic, "sum"),
    "sum and penalty": (penalised, "composed"),
    "root mean square": (lambda x, y, w: np.sqrt(mse(x, y, w)), "composed"),
    "predictions": (lambda x, y, w: np.tanh(x @ w), "concatenation"),
    "predictions by n": (lambda x, y, w: (x @ w - y) / x.shape[0], "concatenation"),
    "largest": (lambda x, y, w: np.max(x @ w - y), "maximum"),
    "largest exponential": (lambda x, y, w: np.exp(np.max(x @ w - y)), "maximum"),
    "minus the largest": (lambda x, y, w: 3 - np.max(x @ w - y), "minimum"),
    "two largest": (lambda x, y, w: np.max(x @ w) + np.max(y), "composed"),
    "smallest": (lambda x, y, w: np.min(x @ w - y), "minimum"),
    "product": (lambda x, y, w: np.prod((x @ w - y) ** 2), "product"),
    "log-sum-exp": (lambda x, y, w: functions.logsumexp(x @ w - y) + w[0, 0], "logsumexp"),
    "twice log-sum-exp": (lambda x, y, w: 2 * functions.logsumexp(x @ w - y), "composed"),
    "softmax of rows": (lambda x, y, w: functions.softmax(x @ w, axis=0), "concatenation"),
    "attention over rows": (
        lambda x, y, w: functions.softmax(x @ w, axis=0).T @ x, "softmax-weighted mean",
    ),
    "products of columns": (lambda x, y, w: x.T @ x, "sum"),
    "number of rows": (lambda x, y, w: x.shape[0] * (w**2).sum(), "sum"),
    "coefficient of determination": (
        lambda x, y, w: 1 - sse(x, y, w) / ((y**2).sum() - y.sum() ** 2 / x.shape[0]), "composed"),
    "unbiased": (lambda x, y, w: sse(x, y, w) / (x.shape[0] - 1), "composed"),
    "function of means of columns": (lambda x, y, w: np.tanh(x.mean(axis=0)), "composed"),
    "no data": (lambda x, y, w: (w**2).sum(), "same"),
    "masked": (lambda x, y, w: np.where(y > 0.5, x @ w, 0).sum() / x.shape[0], "mean"),
    "factor of the normal matrix": (
        lambda x, y, w: np.linalg.cholesky(x.T @ x + functions.eye(x.shape[1])), "composed"),
    "normal equations": (
        lambda x, y, w: np.linalg.solve(x.T @ x + functions.eye(x.shape[1]), x.T @ y), "composed"),
    "mean of means of rows": (lambda x, y, w: x.mean(axis=1).mean(), "mean"),
    "mean of means of columns": (lambda x, y, w: x.mean(axis=0).mean(), "mean"),
    "sum by n squared": (lambda x, y, w: y.sum() / x.shape[0] ** 2, "composed"),
    "spread by log-sum-exp": (lambda x, y, w: functions.logsumexp(y) - np.max(y), "composed"),
    "positions in a row": (
        lambda x, y, w: np.take_along_axis(x, np.argmax(x, axis=1)[:, None], 1).sum(), "sum"),
}  # fmt: skip

MIXED = {
    "batch norm": lambda x, y, w: ((((x - x.mean(axis=0)) / x.std(axis=0)) @ w - y) ** 2).sum(),
    "softmax over the batch": lambda x, y, w: (functions.softmax(x @ w, axis=0) ** 2).sum(),
    "log-softmax over the batch": lambda x, y, w: functions.log_softmax(x @ w, axis=0),
    "differences": lambda x, y, w: (np.diff(x @ w - y, axis=0) ** 2).sum(),
    "pairs": lambda x, y, w: np.exp(x @ x.T).sum(),
    "sorted": lambda x, y, w: np.sort((x @ w - y)[:, 0]),
    "first row": lambda x, y, w: x[0] @ w,
    "reversed": lambda x, y, w: (x @ w)[::-1],
    "running sums": lambda x, y, w: np.cumsum(x @ w, axis=0),
    "standard deviation": lambda x, y, w: np.std(x @ w - y),
    "shifted by the largest": lambda x, y, w: (y - np.max(y)).sum(),
    "weighted by position": lambda x, y, w: (functions.arange(x.shape[0]) * y[:, 0]).sum(),
    "above the mean": lambda x, y, w: np.where(y > y.mean(), y, 0).sum(),
    "by the norm": lambda x, y, w: y / np.linalg.norm(y),
    "rotated": lambda x, y, w: (np.roll(y[:, 0], 1) * y[:, 0]).sum(),
    "sorted and weighted": lambda x, y, w: (np.sort(y[:, 0]) * y[:, 0]).sum(),
    "determinant of rows": lambda x, y, w: np.linalg.det(x @ x.T + functions.eye(x.shape[0])),
    "attention among rows": lambda x, y, w: functions.attention(x, x, x),
    "columns as rows": lambda x, y, w: np.tanh(x.T.reshape(x.shape[0], x.shape[1])),
    "mean with parameters": lambda x, y, w: np.concatenate([(x @ w)[:, 0], w[:, 0]]).mean(),
}


def traced(f):
    return symad.trace(f, [X, Y, W])


@pytest.mark.parametrize("name", SPLIT)
def test_a_function_splits_by_its_rule(name):
    f, rule = SPLIT[name]
    found = symad.splits(traced(f), OVER)
    assert found.status == "proved", str(found)
    assert found.rules == (rule,)
    assert agree(found) > 0


@pytest.mark.parametrize("name", MIXED)
def test_what_mixes_rows_is_refuted_with_the_op_and_a_witness(name):
    found = symad.splits(traced(MIXED[name]), OVER)
    assert found.status == "refuted" and not found and found.plan is None
    assert "the op " in found.entries[0].claim and "mixes the parts" in found.entries[0].claim
    assert is_wrong_at_its_witness(found)
    with pytest.raises(AssertionError, match=r"mixes\s+the\s+parts"):
        found.raise_if_refuted()


OUTSIDE = {
    "logarithm of the largest": lambda x, y, w: np.log(np.max(y)),
    "exponential of a sum": lambda x, y, w: np.exp(500 * (x[:, 0] - y[:, 0]).sum()),
}
"""Functions that have a value on all data, and none on some part, or one too large for a float."""


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_function_is_applied_to_the_whole_where_parts_may_have_no_value(name):
    found = symad.splits(traced(OUTSIDE[name]), OVER)
    assert found.rules == ("composed",)
    assert agree(found, low=-2.0, high=2.0) > 0


DERIVATIVES = {
    "gradient": lambda g: symad.gradient(g, "w"),
    "value and gradient": lambda g: symad.value_and_gradient(g, "w"),
    "Hessian": lambda g: symad.hessian(g, "w"),
    "Hessian product": lambda g: symad.hvp(g, "w"),
    "gradient by data": lambda g: symad.gradient(g, "X"),
    "tangent": lambda g: symad.pushforward(g, "w"),
    "cotangent": lambda g: symad.pullback(g, "w"),
}


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("f", [sse, mse, logistic, penalised])
def test_derivatives_of_sums_and_means_split(f, derivative):
    found = symad.splits(DERIVATIVES[derivative](traced(f)), OVER)
    assert found.status == "proved", str(found)
    assert agree(found) > 0


def test_the_gradient_of_log_sum_exp_is_a_softmax_weighted_mean_of_rows():
    g = traced(lambda x, y, w: functions.logsumexp(x @ w - y))
    assert symad.splits(symad.gradient(g, "w"), OVER).rule == "softmax-weighted mean"
    assert symad.splits(symad.gradient(g, "y"), OVER).rule == "concatenation"
    assert agree(symad.splits(symad.value_and_gradient(g, "w"), OVER)) > 0


def test_gauss_newton_products_split():
    """Jᵀ(J v) of residuals that are rows."""
    residuals = traced(lambda x, y, w: np.tanh(x @ w) - y)
    v = sp.MatrixSymbol("v", d, 1)
    forward, back = symad.pushforward(residuals, "w"), symad.pullback(residuals, "w")

    def product(x, y, w, v):
        _, moved = forward(x, y, w, v)
        return back(x, y, w, moved)[1]

    found = symad.splits(symad.trace(product, [X, Y, W, v]), OVER)
    assert found.rules == ("sum",)
    assert agree(found) > 0


def test_a_sparse_matrix_of_sums_splits():
    """The three entries of [[a, c], [0, b]] are sums over rows."""
    first, second, both = (traced(f).outputs[0] for f in (
        lambda x, y, w: (x[:, 0] ** 2).sum().reshape(1), lambda x, y, w: y.sum().reshape(1),
        lambda x, y, w: (x[:, 0] * y[:, 0]).sum().reshape(1)))  # fmt: skip
    parts = [(first, [0]), (both, [1]), (second, [2])]
    matrix = compressed_rows((2, 2), [0, 2, 3], [0, 1, 1], parts)
    inputs = traced(sse).input_nodes
    found = symad.splits(Graph(inputs, (matrix,)), OVER)
    assert found.rules == ("sum",)


def test_attention_splits_over_keys_by_the_online_rule_and_over_queries_by_rows():
    q = sp.IndexedBase("q", shape=(2, 3, m, 4))
    k = sp.IndexedBase("k", shape=(2, 3, n, 4))
    v = sp.IndexedBase("v", shape=(2, 3, n, 5))
    g = symad.trace(lambda q, k, v: functions.softmax(q @ np.swapaxes(k, 2, 3)) @ v, [q, k, v])
    keys = symad.splits(g, {"k": 2, "v": 2})
    assert keys.rule == "softmax-weighted mean" and agree(keys) > 0
    queries = symad.splits(g, {"q": 2})
    assert queries.rule == "concatenation" and agree(queries) > 0
    heads = symad.splits(
        symad.trace(lambda k, v: np.exp(k @ np.swapaxes(k, 2, 3)).sum(), [k, v]), {"k": 2, "v": 2}
    )
    assert heads.status == "refuted"


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ({"Z": 0}, "not an input of sse: it has X, y, w"),
        ({"X": 2, "y": 0}, "X has 2 axes; axis 2 is not one"),
        ({"X": True}, "axis True is not one"),
        ({"X": 1, "y": 0}, "lengths d and n"),
        ({"X": 0}, "axis 0 of y has the length n too"),
        ({}, "over is empty"),
    ],
)
def test_axes_that_cannot_be_split_are_named(over, message):
    with pytest.raises(ShapeError, match=message):
        symad.splits(traced(sse), over)


def test_an_axis_of_fixed_length_is_named():
    a = sp.MatrixSymbol("A", 4, 2)
    with pytest.raises(ShapeError, match="length 4; only an axis whose length is a symbol"):
        symad.splits(symad.trace(lambda a: a.sum(), [a]), {"A": 0})


def test_a_splitting_is_a_certificate():
    found = symad.splits(traced(mse), OVER)
    assert found and found.bound == 0 and "combined by mean" in str(found)
    again = found.recheck()
    assert (again.status, again.rules) == (found.status, found.rules)
