"""Constants of every value, dtype and shape mean the same in the graph and on every backend."""

from typing import Any

import numpy as np
import pytest

import symad
from symad import functions
from symad.errors import TraceError
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


EXTREMES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i8", ">u2", "f2", "f4", "f8", "g", "bool"]
PROGRAMS: dict[str, Any] = {
    "product": lambda x, c: (x * c) * c,
    "sum": lambda x, c: (x + c) + c,
    "difference": lambda x, c: c - x,
    "negated": lambda x, c: x * 0 - c,
    "total": lambda x, c: (x * 0 + c).sum() / 4,
    "choice": lambda x, c: np.where(x < c, c, x),
    "maximum": lambda x, c: np.maximum(x, c),
    "contraction": lambda x, c: x @ c,
    "joined": lambda x, c: np.concatenate([x, c]),
    "result": lambda x, c: c + 0 * x,
}


@pytest.mark.sample(7)
@pytest.mark.parametrize("kind", EXTREMES)
def test_the_largest_and_smallest_numbers_of_every_dtype(kind: str) -> None:
    """As numbers, not as integers of their width, which overflow, and whose negatives may be positive."""
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        largest = min(float(np.finfo(dtype).max), 1e100)
        given = [largest, -largest / 3, 0.1]
    else:
        info = np.iinfo(dtype) if dtype.kind in "iu" else None
        given = [True, False, True] if info is None else [info.max, info.min, info.max - 1]
    c, x = np.array(given, dtype=dtype), np.array([3.0, -2.0, 0.5])
    for name, program in PROGRAMS.items():
        graph = symad.trace(lambda x, f=program: f(x, c), [(3,)])
        right = program(x, c.astype(np.float64))
        for f in (graph, lower(graph), lower(graph, style="plain"), lower(graph, "c")):
            np.testing.assert_allclose(f(x), right, rtol=1e-15, err_msg=name)


def test_a_long_double_beyond_all_floats_is_refused() -> None:
    large = np.array([np.finfo(np.longdouble).max, 1])
    if np.finfo(np.longdouble).max == np.finfo(float).max:
        pytest.skip("long double is double here")
    for constant in (large, large[0]):
        with pytest.raises(TraceError, match="larger than all numbers of float64"):
            symad.trace(lambda x, c=constant: x * c, [(2,)])


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
