"""The passes for array programs: what each one changes, and that values change by rounding only."""

import itertools
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.compiled_arrays.choose_kernels import fuse
from symad.numeric.passes.blocking import row_blocks
from symad.numeric.pipelines import (
    ARRAY_GRAPH,
    BLOCK_GRAPH,
    COMPILED_GRAPH,
    KERNEL_GRAPH,
    NUMPY_GRAPH,
    run_graph_passes,
)

Build = Callable[[np.random.Generator], tuple[symad.Graph, list[np.ndarray[Any, Any]]]]


def close(graph: Any, values: list[Any], rtol: float = 1e-11) -> str:
    """Compare the code with the graph, evaluated node by node; check that no input changed."""
    kernel = lower(graph)
    before = [np.array(v) for v in values]
    got = kernel(*values)
    assert all(np.array_equal(a, b) for a, b in zip(before, values, strict=True))
    expected = graph(*values)
    several = isinstance(expected, tuple)
    passed = run_graph_passes(graph, (*ARRAY_GRAPH, *BLOCK_GRAPH, *NUMPY_GRAPH))
    kernels = fuse(run_graph_passes(graph, (*COMPILED_GRAPH, *BLOCK_GRAPH, *KERNEL_GRAPH)), "float64")
    for made in (passed(*values), kernels(*values)):  # loops over blocks of rows, and kernels, are ops
        for one, other in zip(made if several else [made], expected if several else [expected], strict=True):
            assert np.allclose(one, other, rtol=rtol, atol=rtol)
    for one, other in zip(got if several else [got], expected if several else [expected], strict=True):
        assert np.allclose(one, other, rtol=rtol, atol=rtol), np.max(np.abs(one - other))
    again = kernel(*values)
    for one, other in zip(got if several else [got], again if several else [again], strict=True):
        assert np.array_equal(one, other)
    return kernel.source


# ---- in place ------------------------------------------------------------------------------------

UNARY = (np.tanh, np.exp, lambda x: x**2, lambda x: -x, lambda x: np.sqrt(x * x + 1), functions.sigmoid)
JOINING = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a / (b * b + 1),
    lambda a, b: np.maximum(a, b),
    lambda a, b: a @ b.T,
    lambda a, b: a.T + b,
    lambda a, b: a + b[0],
    lambda a, b: a * b[:, :1],
    lambda a, b: np.concatenate([a[:2], b[2:]]),
    lambda a, b: a + b[::-1],
)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_overwrite_nothing_that_is_needed(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def program(x: Any, y: Any) -> Any:
        known = [x, y]
        for _ in range(12):
            if rng.random() < 0.4:
                made = UNARY[rng.integers(len(UNARY))](known[rng.integers(len(known))])
            else:
                a, b = (known[k] for k in rng.integers(len(known), size=2))
                made = JOINING[rng.integers(len(JOINING))](a, b)
            known.append(np.tanh(made))
        return tuple(known[k] for k in rng.integers(2, len(known), size=3)), np.sum(known[-1] * known[-2])

    graph = symad.trace(program, inputs=[(4, 4), (4, 4)])
    values = [rng.normal(size=(4, 4)) for _ in range(2)]
    flat = symad.trace(lambda x, y: graph(x, y)[0][0] + graph(x, y)[1], inputs=[(4, 4), (4, 4)])
    close(flat, values)
    scalar = symad.trace(lambda x, y: graph(x, y)[1], inputs=[(4, 4), (4, 4)])
    close(symad.value_and_gradient(scalar), values, rtol=1e-9)


def test_a_chain_of_functions_uses_one_array() -> None:
    graph = symad.trace(lambda x, b: np.exp(np.tanh(x @ x + b) * 2) - b, inputs=[(5, 5), (5,)])
    source = close(graph, [np.eye(5) / 3, np.arange(5.0)])
    body = source.split('"""')[-1]
    assert body.count(" = v") == 0 and "np.tanh(v1, v1)" in body and "np.exp(v1, v1)" in body
    assert "broadcast_to" not in body


def test_boxes_are_filled_where_they_are() -> None:
    def cut(x: Any) -> Any:
        return np.sum(np.tanh(x[:, :2]) * x[:, 2:4] + functions.sigmoid(x[:, 4:]))

    graph = symad.gradient(symad.trace(cut, inputs=[(3, 6)]))
    source = close(graph, [np.random.default_rng(0).normal(size=(3, 6))])
    assert "_pad" not in source and source.count("np.empty") == 1


# ---- loops ---------------------------------------------------------------------------------------


def lstm(T: int, B: int, D: int, H: int) -> symad.Graph:
    def loss(W: Any, U: Any, b: Any, x: Any) -> Any:
        def step(state: Any, x_t: Any) -> Any:
            h, c = state
            z = h @ W + x_t @ U + b
            i, f, g, o = (z[:, k * H : (k + 1) * H] for k in range(4))
            c = functions.sigmoid(f) * c + functions.sigmoid(i) * np.tanh(g)
            return functions.sigmoid(o) * np.tanh(c), c

        zero = np.zeros((B, H))
        states, _ = functions.scan(step, (zero, zero), x)
        return np.sum(states**2)

    return symad.trace(loss, inputs=[(H, 4 * H), (D, 4 * H), (4 * H,), (T, B, D)])


def test_backward_loops_use_what_forward_loops_kept() -> None:
    graph = symad.value_and_gradient(lstm(5, 2, 3, 4))
    rng = np.random.default_rng(0)
    source = close(graph, [rng.normal(size=s) for s in ((4, 16), (3, 16), (16,), (5, 2, 3))])
    forward, backward = source.rpartition("\ndef ")[2].split("\n    for ")[1:]
    assert "np.tanh" in forward and "_sigmoid" in forward
    assert "np.tanh" not in backward.split("\n    v")[0] and "_sigmoid" not in backward
    assert source.count("np.tanh(") == 2  # of the gate and of the cell, both in the loop


def test_equal_nodes_of_nested_bodies_are_kept_apart() -> None:
    def outer(c: Any, row: Any) -> Any:
        inner = functions.scan(lambda s, v: 0.5 * s + v * c, c, row)
        return inner[-1]

    graph = symad.trace(lambda c, x: np.sum(functions.scan(outer, c, x) ** 2), inputs=[(), (3, 4)])
    x = np.random.default_rng(0).normal(size=(3, 4))
    close(symad.value_and_gradient(graph), [np.array(0.7), x])


# ---- blocks of rows ------------------------------------------------------------------------------


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "MIN_ELEMENTS", 200)
    monkeypatch.setattr("symad.numeric.program_passes.loops.open_bodies.BLOCK", 256)
    monkeypatch.setattr(row_blocks, "BLOCK", 256)


def heads(x: Any, Q: Any, K: Any, V: Any, mask: Any) -> Any:
    n, d = x.shape
    q, k, v = ((x @ M).reshape(n, 2, d // 2).transpose(1, 0, 2) for M in (Q, K, V))
    scores = np.where(mask, q @ k.transpose(0, 2, 1) / 3, -np.inf)
    return (functions.softmax(scores, axis=-1) @ v).transpose(1, 0, 2).reshape(n, d)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [16, 19])
def test_kernel_matrices_are_made_in_blocks_of_rows(n: int) -> None:
    def ridge(a: Any, gamma: Any, x: Any, y: Any) -> Any:
        square = np.sum(x**2, axis=1)
        K = np.exp(-gamma * (square[:, None] + square[None, :] - 2 * (x @ x.T)))
        return 0.5 * np.sum((K @ a - y) ** 2) + 0.05 * np.sum(a * (K @ a))

    graph = symad.value_and_gradient(symad.trace(ridge, inputs=[(n,), (), (n, 2), (n,)]), wrt=[0, 1])
    rng = np.random.default_rng(1)
    source = close(graph, [rng.normal(size=n), np.array(0.3), rng.normal(size=(n, 2)), rng.normal(size=n)])
    assert source.count("for start") == 1
    assert f"({n}, {n})" not in source.split('"""')[-1]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [20, 27])
@pytest.mark.parametrize("kind", ["causal", "window", "none"])
def test_attention_in_blocks_of_rows(n: int, kind: str) -> None:
    i, j = np.arange(n)[:, None], np.arange(n)[None, :]
    mask = {"causal": j <= i, "window": (j <= i) & (j > i - 5), "none": j >= 0}[kind]

    def loss(x: Any, Q: Any, K: Any, V: Any, y: Any) -> Any:
        return np.mean((heads(x, Q, K, V, mask) - y) ** 2)

    graph = symad.value_and_gradient(
        symad.trace(loss, inputs=[(n, 6), (6, 6), (6, 6), (6, 6), (n, 6)]), wrt=[0, 1, 2, 3]
    )
    rng = np.random.default_rng(2)
    source = close(graph, [rng.normal(size=s) for s in ((n, 6), (6, 6), (6, 6), (6, 6), (n, 6))])
    assert "for start" in source
    assert ("stop" in source) == (kind == "causal")  # columns behind the diagonal are left out


@pytest.mark.usefixtures("small_blocks")
def test_causal_weights_that_are_a_result_are_complete() -> None:
    n = 16
    mask = np.tril(np.ones((n, n), bool))

    def weights(x: Any) -> Any:
        p = functions.softmax(np.where(mask, 3 * (x @ x.T), -np.inf), axis=-1)
        return p, p @ x

    close(symad.trace(weights, inputs=[(n, 3)]), [np.random.default_rng(3).normal(size=(n, 3))])


@pytest.mark.usefixtures("small_blocks")
def test_a_sum_over_rows_that_later_rows_need_ends_a_block_loop() -> None:
    n = 16

    def centred(x: Any) -> Any:
        K = np.exp(x @ x.T / 4)
        return np.sum((K - np.mean(K, axis=0)) ** 2 * K)

    x = np.random.default_rng(4).normal(size=(n, 2))
    close(symad.value_and_gradient(symad.trace(centred, inputs=[(n, 2)])), [x], rtol=1e-9)


# ---- sums of products ----------------------------------------------------------------------------


def test_sums_of_products_make_no_array() -> None:
    graph = symad.trace(lambda x, y: np.sum(3 * x * y) - np.mean(x**2), inputs=[(6, 5), (6, 5)])
    rng = np.random.default_rng(0)
    body = close(graph, [rng.normal(size=(6, 5)), rng.normal(size=(6, 5))]).split('"""')[-1]
    assert body.count("np.vdot") == 2 and ".sum(" not in body


def test_contractions_go_two_at_a_time_in_the_cheapest_order() -> None:
    graph = symad.trace(
        lambda u, A, B, v: np.sum((A * B) * (u[:, None] * v[None, :])), inputs=[(7,), (7, 5), (7, 5), (5,)]
    )
    rng = np.random.default_rng(0)
    source = close(graph, [rng.normal(size=s) for s in ((7,), (7, 5), (7, 5), (5,))])
    assert "einsum" not in source and "[:, None]" not in source  # no outer product


# ---- functions in NumPy --------------------------------------------------------------------------

HOSTILE = [0.0, -0.0, 1e-30, -1e-30, 1e-5, -1e-5, 0.3, -0.7, 3.0, -3.0, 9.0, -9.0, 20.0, -20.0, 60.0, -60.0]


@pytest.mark.parametrize(
    ("name", "function", "reference"),
    [
        ("sigmoid", functions.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x))),
        ("softplus", functions.softplus, lambda x: mpmath.log1p(mpmath.exp(x))),
        ("silu", functions.silu, lambda x: x / (1 + mpmath.exp(-x))),
        ("erfc", lambda x: symad.trace(sp.erfc(sp.Symbol("z", real=True)))(x), mpmath.erfc),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_of_arrays_are_accurate(name: str, function: Any, reference: Any, dtype: str) -> None:
    kernel = lower(symad.trace(function, inputs=[(len(HOSTILE),)]), dtype=dtype)
    x = np.array(HOSTILE, dtype)
    got = kernel(x)
    eps, tiny = np.finfo(dtype).eps, np.finfo(dtype).tiny
    assert got.dtype == dtype
    with mpmath.workdps(50):
        for value, point in zip(got, x, strict=True):
            exact = reference(mpmath.mpf(float(point)))
            assert abs(float(value) - exact) <= 8 * eps * abs(exact) + tiny, (name, point)


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "silu"])
def test_functions_of_arrays_at_infinity(name: str) -> None:
    kernel = lower(symad.trace(getattr(functions, name), inputs=[(3,)]))
    limits = {"sigmoid": [0, 1], "softplus": [0, np.inf], "silu": [0, np.inf]}[name]
    with np.errstate(all="ignore"):
        low, high, nothing = kernel(np.array([-800.0, np.inf, np.nan]))
    assert abs(low - limits[0]) < 1e-300 and high == limits[1] and np.isnan(nothing)


def test_single_precision_stays_single() -> None:
    def network(W: Any, b: Any, x: Any) -> Any:
        h = functions.relu(x @ W + b)
        return np.mean(functions.gelu(h) ** 2 / np.sqrt(2)) + np.sum(functions.softmax(h, axis=-1)[:, 0])

    kernel = lower(
        symad.value_and_gradient(symad.trace(network, inputs=[(3, 4), (4,), (5, 3)])), dtype="float32"
    )
    rng = np.random.default_rng(0)
    results = kernel(*[rng.normal(size=s).astype(np.float32) for s in ((3, 4), (4,), (5, 3))])
    assert [np.asarray(r).dtype for r in results] == [np.float32] * len(results)


def test_gelu_and_its_derivative_share_the_error_function() -> None:
    loss = symad.trace(lambda x: np.sum(functions.gelu(x)), inputs=[(4, 3)])
    source = close(symad.value_and_gradient(loss), [np.random.default_rng(0).normal(size=(4, 3))])
    assert source.split('"""')[-1].count("erfc(") == 1


def test_factors_of_every_order_of_operands() -> None:
    # Sums and quotients whose first operand is the one that is left over.
    forms = [
        lambda a, b: b[0] - np.exp(a),
        lambda a, b: 1 / np.exp(a),
        lambda a, b: b / np.exp(a) / a,
        lambda a, b: -np.exp(a) - b - 2,
        lambda a, b: 3 - np.exp(a) + b[:, :1],
        lambda a, b: np.exp(a) * (b > 0),
    ]
    rng = np.random.default_rng(0)
    for form, shape in itertools.product(forms, [(3, 4), (1, 1)]):
        close(symad.trace(form, inputs=[shape, shape]), [rng.normal(size=shape), rng.normal(size=shape)])


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros((9, 9)), "np.zeros((9, 9), dtype=np.float64)"),
        (np.full((80,), 2.5), "np.full((80,), 2.5, dtype=np.float64)"),
        (np.tri(9, 8, 2, dtype=bool), "np.tri(9, 8, 2, dtype=bool)"),
        (~np.tri(9, 9, -1, dtype=bool), "~np.tri(9, 9, -1, dtype=bool)"),
        (np.arange(99.0), "np.arange(99, dtype=np.float64)"),
        (np.eye(12, dtype=bool), "_integers("),
    ],
)
def test_constants_are_written_by_formula(array: np.ndarray[Any, Any], text: str) -> None:
    graph = symad.trace(lambda x: np.where(array > 0, x, -x), inputs=[array.shape])
    if array.dtype == bool:
        graph = symad.trace(lambda x: np.where(array, x, -x), inputs=[array.shape])
    elif array.min() != array.max() or array.flat[0]:
        graph = symad.trace(lambda x: x * array, inputs=[array.shape])
    else:
        graph = symad.trace(lambda x: x @ (x.T - array), inputs=[array.shape])
    x = np.random.default_rng(0).normal(size=array.shape)
    assert text in close(graph, [x])


def test_erfc_in_single_precision_to_six_units() -> None:
    kernel = lower(symad.trace(_erfc, inputs=[(70001,)]), dtype="float32")
    special = pytest.importorskip("scipy.special")
    x = np.linspace(-9.1, 9.1, 70001).astype(np.float32)
    exact = special.erfc(x.astype(np.float64))
    assert np.max(np.abs(kernel(x) - exact) / exact) <= 6 * np.finfo(np.float32).eps
    x[:5] = [np.inf, -np.inf, np.nan, 1e30, -1e30]
    with np.errstate(all="ignore"):
        got = kernel(x)
    assert got[:2].tolist() == [0, 2] and np.isnan(got[2]) and got[3:5].tolist() == [0, 2]


def _erfc(x: Any) -> Any:
    return symad.trace(sp.erfc(sp.Symbol("z", real=True)))(x)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_hidden_scores_do_not_matter_whatever_they_are(dtype: str) -> None:
    mask = np.tril(np.ones((6, 6), bool))

    def weights(s: Any) -> Any:
        return functions.softmax(np.where(mask, s * 1.0, -np.inf), axis=-1)

    kernel = lower(symad.trace(weights, inputs=[(2, 6, 6)]), dtype=dtype)
    assert "fmin" in kernel.source
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2, 6, 6))
    exact = np.where(mask, np.exp(scores), 0)
    exact /= exact.sum(axis=-1, keepdims=True)
    for hidden in (np.nan, np.inf, -np.inf, 1e30):
        spoilt = np.where(mask, scores, hidden)
        with np.errstate(all="ignore"):
            assert np.allclose(kernel(spoilt), exact, rtol=1e-6 if dtype == "float32" else 1e-13)
    scores[0, 3, 1] = np.nan
    with np.errstate(all="ignore"):
        got = kernel(scores)
    assert np.isnan(got[0, 3, 1]) and not np.isnan(got[0, 4]).any() and not np.isnan(got[1]).any()
