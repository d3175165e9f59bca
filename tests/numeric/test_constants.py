"""Constants of every value, dtype and shape mean the same in the graph and on every backend."""

from typing import Any

import numpy as np
import pytest

import symad
from symad import functions
from symad.numeric import lower

VALUES = [np.inf, -np.inf, np.nan, -0.0, 0.0, 5e-324, -2.5e-310, 1.5, -1e300, 3.0]
SHAPES = {"short": (10,), "long": (9, 10), "uniform": (80,)}
KINDS = [np.float64, np.float32, np.float16, np.int8, np.int64, np.uint16, np.bool_, ">f8", "<i4"]


def same(made: Any, right: Any) -> bool:
    made, right = np.asarray(made, dtype=float), np.asarray(right, dtype=float)
    signs = np.array_equal(np.signbit(made), np.signbit(right))
    return bool(signs and np.array_equal(made, right, equal_nan=True))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("shape", SHAPES)
def test_array_constants_of_every_float(shape: str, backend: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for value in VALUES if shape == "uniform" else [None]:
        size = SHAPES[shape]
        array = np.full(size, value) if value is not None else rng.permuted(np.resize(VALUES, size))
        with np.errstate(over="ignore"):
            right = array.astype(dtype).astype(float)
        x = np.ones(size)
        graph = symad.trace(lambda x, c=array: (x * c, c), [size])
        if dtype == "float64":
            assert all(same(y, right) for y in graph(x))
        with np.errstate(all="ignore"):
            assert all(same(y, right) for y in lower(graph, backend, dtype=dtype)(x)), (shape, value)


@pytest.mark.parametrize("backend", ["numpy", "c", "runs"])
@pytest.mark.parametrize("value", VALUES)
def test_scalar_constants_of_every_float(value: float, backend: str) -> None:
    graph = symad.trace(lambda x: (x * value, value * np.ones(3)), [()])
    for y, right in zip(lower(graph, backend)(1.0), (value, np.full(3, value)), strict=True):
        assert same(y, right)
    for y, right in zip(graph(1.0), (value, np.full(3, value)), strict=True):
        assert same(y, right)
    many = symad.trace(lambda x: tuple(x * k + value for k in range(1, 41)), [()])
    made = np.array(lower(many, backend)(np.array([1.0, 2.0])))
    assert same(made, np.arange(1.0, 41.0)[:, None] * [1.0, 2.0] + value)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("kind", KINDS)
def test_array_constants_of_every_dtype(kind: Any, backend: str) -> None:
    array = np.arange(12).reshape(3, 4).astype(kind)
    graph = symad.trace(lambda x: x + array, [(3, 4)])
    expected = 1.0 + np.arange(12).reshape(3, 4).astype(kind).astype(float)
    assert same(graph(np.ones((3, 4))), expected)
    assert same(lower(graph, backend)(np.ones((3, 4))), expected)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("shape", [(0,), (0, 2, 4), (3, 0)])
def test_empty_constants_keep_their_shape(shape: tuple[int, ...], backend: str) -> None:
    graph = symad.trace(lambda x: (x * np.zeros(shape), np.zeros(shape), np.sum(x * np.ones(shape))), [shape])
    for f in (graph, lower(graph, backend)):
        product, constant, total = f(np.zeros(shape))
        assert product.shape == constant.shape == shape and total == 0


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_a_causal_mask_of_infinities(backend: str) -> None:
    mask = np.triu(np.full((4, 4), -np.inf), 1)
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(4, 4)) for _ in range(3))

    def attention(q: Any, k: Any, v: Any) -> Any:
        return (functions.softmax(q @ k.T / 2 + mask, axis=-1) @ v).sum()

    weights = np.exp(q @ k.T / 2) * np.tri(4)
    right = (weights / weights.sum(1, keepdims=True) @ v).sum()
    assert np.isclose(lower(symad.trace(attention, [(4, 4)] * 3), backend)(q, k, v), right, rtol=1e-14)
