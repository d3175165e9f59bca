"""Graphs and kernels take the same arrays, and refuse the same ones by name."""

from typing import Any

import numpy as np
import pytest

import symad
from symad.errors import EvaluationError
from symad.numeric import lower

GRAPH = symad.trace(lambda speed: np.sum(speed * speed), [(3,)])
ROUTES = {
    "graph": lambda: GRAPH,
    "numpy": lambda: lower(GRAPH),
    "c": lambda: lower(GRAPH, "c"),
    "float32": lambda: lower(GRAPH, dtype="float32"),
    "packed": lambda: lower(GRAPH, packed=True),
}
VALUES = np.array([1.0, 2.0, 3.0])


def torch_tensor() -> Any:
    return pytest.importorskip("torch").tensor([1.0, 2.0, 3.0])


def jax_array() -> Any:
    return pytest.importorskip("jax.numpy").array([1.0, 2.0, 3.0])


def pandas_series() -> Any:
    return pytest.importorskip("pandas").Series([1.0, 2.0, 3.0], index=["c", "a", "b"])


KINDS = {
    "list": lambda: [1.0, 2.0, 3.0],
    "integers": lambda: np.array([1, 2, 3], dtype=np.int16),
    "other byte order": lambda: VALUES.astype(">f8"),
    "half precision": lambda: VALUES.astype(np.float16),
    "read only": lambda: np.frombuffer(VALUES.tobytes()),
    "strides": lambda: np.repeat(VALUES, 2)[::2],
    "memoryview": lambda: memoryview(VALUES),
    "masked without a mask": lambda: np.ma.masked_array(VALUES, mask=[False] * 3),
    "torch": torch_tensor,
    "jax": jax_array,
    "pandas": pandas_series,
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kind", KINDS)
def test_taken(kind: str, route: str) -> None:
    assert float(np.ravel(ROUTES[route]()(KINDS[kind]()))[0]) == 14.0


@pytest.mark.parametrize("route", ROUTES)
def test_missing_elements_are_refused(route: str) -> None:
    name = "x" if route == "packed" else "speed"  # the flat vector is an argument of its own
    with pytest.raises(EvaluationError, match=f"{name} was given a masked array"):
        ROUTES[route]()(np.ma.masked_array([1.0, 1e40, 3.0], mask=[0, 1, 0]))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("value", [VALUES + 1j, ["a", "b", "c"], np.array([None] * 3), "abc"])
def test_what_holds_no_real_numbers_is_refused(value: Any, route: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        ROUTES[route]()(value)
