"""Class numbers, row numbers and positions in CuPy code: exact in every dtype, and checked once a call."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.errors import LoweringError
from symad.gpu.passes.integers import integer_inputs, needed_as_integers
from symad.models.layers.losses import cross_entropy
from symad.models.layers.parameters import trace_model
from symad.models.transformers import positions
from symad.models.transformers.transformer import Transformer
from symad.numeric import lower
from tests.gpu.cupy_agreement import WHERE, library, on_device

pytest.importorskip("ml_dtypes")
RNG = np.random.default_rng(8)
HALVES = pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
LABELS = np.array([257, 301, 2049, 2999])
n = sp.Symbol("n", integer=True, positive=True)


def narrow(values, dtype):
    """Values that the dtype holds, in float64."""
    return np.asarray(values).astype(dtype).astype(float)


@pytest.mark.thorough
@HALVES
@pytest.mark.parametrize("where", WHERE)
def test_labels_of_a_cross_entropy(dtype, where):
    """The gradient of −log softmax(z)_y by z is negative at y alone."""
    scores = narrow(0.1 * RNG.normal(size=(4, 3000)), dtype)
    graph = symad.gradient(symad.trace(cross_entropy, [(4, 3000), (4,)]), wrt=0)
    with library(where) as cp:
        (z,) = on_device(cp, [scores], dtype)
        got = lower(graph, backend="cupy", dtype=dtype)(z, cp.asarray(LABELS)).get().astype(float)
    assert np.array_equal(np.argwhere(got < 0), np.stack([np.arange(4), LABELS], axis=1))
    np.testing.assert_allclose(got[np.arange(4), LABELS], -0.25, rtol=0.01)


@pytest.mark.thorough
@HALVES
@pytest.mark.parametrize("where", WHERE)
def test_a_language_model_with_a_thousand_words(dtype, where):
    model = Transformer(1000, 6, 8, 1, 2)
    tokens, targets = np.array([[257, 301, 999]]), np.array([[301, 999, 513]])
    graph = symad.value_and_gradient(
        trace_model(model.loss, model.shapes, tokens, targets), list(model.shapes)
    )
    values = [narrow(0.3 * RNG.normal(size=s), dtype) for s in model.shapes.values()]
    expected = lower(graph)(*values, tokens, targets)
    with library(where) as cp:
        parameters = on_device(cp, values, dtype)
        got = lower(graph, backend="cupy", dtype=dtype)(*parameters, cp.asarray(tokens), cp.asarray(targets))
        for g, e in zip(got, expected, strict=True):
            scale = 0.05 * max(np.abs(e).max(), 1e-3)
            np.testing.assert_allclose(g.get().astype(float), e, rtol=0.05, atol=scale)


@HALVES
@pytest.mark.parametrize("where", WHERE)
def test_angles_of_many_positions(dtype, where):
    """Angles are computed in float32 of exact positions and frequencies; only the results are rounded."""
    graph = symad.trace(lambda x: positions.rotate(x, functions.arange(x.shape[0])), [(n, 8)])
    x = narrow(RNG.normal(size=(3000, 8)), dtype)
    expected = positions.rotate(x, np.arange(3000.0))
    with library(where) as cp:
        got = lower(graph, backend="cupy", dtype=dtype)(*on_device(cp, [x], dtype)).get().astype(float)
    np.testing.assert_allclose(got, expected, rtol=0.01, atol=0.01)


ROWS = {
    "shifted": lambda t, i: functions.lookup(t, i + 1),
    "scaled and clipped": lambda t, i: functions.lookup(t, np.clip(2 * i - 300, 0, 2999)),
    "of rows": lambda t, i: functions.lookup(t, functions.lookup(functions.arange(3000), i)),
    "joined": lambda t, i: functions.lookup(t, np.concatenate([i, i[::-1] - 1])),
    "picked": lambda t, i: functions.lookup(t, np.where(i > 1000, i, i + 2)),
    "as a number too": lambda t, i: functions.lookup(t, i) * np.sin(i)[:, None],
    "in a loop": lambda t, i: functions.scan(
        lambda h, k: np.tanh(h + functions.lookup(t, k)), np.zeros(2), i
    ),
    "from the end": lambda t, i: t[i - 3000, np.array([0, 1, 0, 1])],
}


@HALVES
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", ROWS)
def test_rows_after_arithmetic_and_moves(name, dtype, where):
    table, rows = narrow(RNG.normal(size=(3000, 2)), dtype), np.array([257, 301, 2049, 2998])
    graph = symad.trace(ROWS[name], [(3000, 2), (4,)])
    expected = lower(graph)(table, rows)
    with library(where) as cp:
        (t,) = on_device(cp, [table], dtype)
        got = lower(graph, backend="cupy", dtype=dtype)(t, cp.asarray(rows)).get().astype(float)
    np.testing.assert_allclose(got, expected, rtol=0.01, atol=0.01)


@HALVES
@pytest.mark.parametrize("where", WHERE)
def test_integer_results_stay_integers(dtype, where):
    graph = symad.trace(lambda x: np.argsort(x), [(3000,)])
    x = np.arange(3000.0)[::-1] / 3000
    with library(where) as cp:
        order = lower(graph, backend="cupy", dtype="float32")(cp.asarray(x.astype("float32")))
        assert order.dtype == np.float32
        half = lower(graph, backend="cupy", dtype=dtype)(
            cp.asarray(np.repeat([1.0, 0.0], 1500).astype(dtype))
        )
        assert half.dtype == np.int64
        assert np.array_equal(half.get(), np.r_[1500:3000, 0:1500])


@pytest.mark.parametrize("where", WHERE)
def test_a_wrong_index_is_an_error_and_right_ones_cost_no_wait(where):
    def f(t, i, j):
        return functions.lookup(t, i).sum() + t[j, 1].sum()

    graph = symad.value_and_gradient(symad.trace(f, [(5, 2), (3,), (2,)]), wrt=0)
    table = RNG.normal(size=(5, 2))
    with library(where) as cp:
        kernel = lower(graph, backend="cupy")
        t, right = cp.asarray(table), cp.asarray(np.array([4, 0, 2]))
        (last,) = (cp.asarray(np.array([-5, 4])),)
        if where == "stand-in":
            before = cp.cuda.counts["synchronizations"]
            kernel(t, right, last)
            assert cp.cuda.counts["synchronizations"] == before

        def call(*arrays):
            kernel(*arrays)
            symad.gpu.check_indices()

        for wrong, error in (([5, 0, 1], r"0\.\.4"), ([-1, 0, 1], r"0\.\.4"), ([2**40, 0, 1], r"0\.\.4")):
            with pytest.raises(IndexError, match=error):
                call(t, cp.asarray(np.array(wrong)), last)
        for wrong in ([-6, 0], [0, 5]):
            with pytest.raises(IndexError, match=r"-5\.\.4: axis 0 of t has length 5"):
                call(t, right, cp.asarray(np.array(wrong)))
        for wrong in ([0.5, 0, 1], [np.nan, 0, 1], [np.inf, 0, 1]):
            with pytest.raises(IndexError, match="i must hold integers"):
                call(t, cp.asarray(np.array(wrong)), last)
        call(t, right, last)
        np.testing.assert_allclose(
            kernel(t, cp.asarray(np.array([4.0, 0, 2])), last)[0].get(), f_value(table)
        )


@pytest.mark.parametrize("twice", [False, True])
def test_a_wrong_index_is_an_error_of_the_next_call_after_a_look_at_the_result(twice):
    graph = symad.trace(lambda t, i: np.sum(t[i]), [(n,), (3,)])
    with library() as cp:
        kernel, arrays = lower(graph, backend="cupy"), [cp.asarray(np.arange(float(k))) for k in (4, 7)]
        wrong, right = (cp.asarray(np.array(rows)) for rows in ([0, 6, 1], [0, 1, 2]))
        found = kernel(arrays[0], wrong)
        if twice:  # before the first one is seen
            kernel(arrays[0], cp.asarray(np.array([5, 6, 7])))
        assert kernel(arrays[1], wrong).get() == 7  # right for the longer array; now the host has waited
        assert found.get() == 1  # row 0 in place of the wrong one
        with pytest.raises(IndexError, match="axis 0 of t has length 4"):
            kernel(arrays[1], right)
        assert kernel(arrays[1], right).get() == 3
        symad.gpu.check_indices()


def test_an_option_waits_at_the_end_of_a_call():
    graph = symad.trace(lambda t, i: t[i], [(4,), (3,)])
    with library() as cp:
        with symad.gpu.options(wait=True):
            kernel = lower(graph, backend="cupy")
        table, wrong = cp.asarray(np.arange(4.0)), cp.asarray(np.array([0, 4, 1]))
        with pytest.raises(IndexError, match=r"-4\.\.3: axis 0 of t has length 4"):
            kernel(table, wrong)


def f_value(table):
    return table[[4, 0, 2]].sum() + table[[0, 4], 1].sum()


def test_an_empty_axis_has_no_rows():
    graph = symad.trace(lambda t, i: functions.lookup(t, i), [(n, 2), (3,)])
    with library() as cp, pytest.raises(IndexError, match="axes of lengths"):
        lower(graph, backend="cupy")(cp.asarray(np.zeros((0, 2))), cp.asarray(np.zeros(3, int)))


@pytest.mark.parametrize("where", WHERE)
def test_whole_numbers_beyond_those_of_a_device_are_floats(where):
    """2⁶³ + 2⁶² as a 64-bit integer with a sign is negative."""
    table = np.array([2**63 + 2**62, 3], dtype=np.uint64)
    graph = symad.trace(lambda x: x * table + 2**70, inputs=[(2,)])
    with library(where) as cp:
        found = lower(graph, backend="cupy")(cp.asarray(np.array([2.0, 5.0]))).get()
    np.testing.assert_array_equal(found, [2.0**64 + 2.0**63 + 2.0**70, 15 + 2.0**70])


def test_which_values_are_integers():
    graph = symad.trace(
        lambda t, i, x: functions.lookup(t, 2 * i + 1) * np.floor(3 * x), [(9, 2), (2,), (2, 2)]
    )
    t, i, x = graph.input_nodes
    assert integer_inputs(graph) == {i}
    assert {t, x}.isdisjoint(needed_as_integers(graph.output_nodes, None))


def test_random_keys_and_halves():
    graph = symad.trace(lambda k: functions.rand(k, 3), [(4,)])
    with pytest.raises(LoweringError, match="float32 or float64"):
        lower(graph, backend="cupy", dtype="bfloat16")
