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
    "torch, requiring grad": lambda: torch_tensor().requires_grad_(),
    "a list of tensors that require grad": lambda: [t.requires_grad_() for t in torch_tensor()],
    "jax": jax_array,
    "pandas": pandas_series,
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kind", KINDS)
def test_taken(kind: str, route: str) -> None:
    assert float(np.ravel(ROUTES[route]()(KINDS[kind]()))[0]) == 14.0


def unaligned(table: Any) -> Any:
    """The same numbers, one byte past where numbers are kept."""
    return np.frombuffer(b"." + table.tobytes(), np.uint8)[1:].view(np.float64).reshape(table.shape)


TABLE = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float16).astype(float)
LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "every second": lambda t: np.repeat(np.repeat(t, 2, 0), 2, 1)[::2, ::2],
    "backwards": lambda t: np.ascontiguousarray(t[::-1, ::-1])[::-1, ::-1],
    "unaligned": unaligned,
    "half precision": lambda t: t.astype(np.float16),
    "long": lambda t: t.astype(np.longdouble),
    "a matrix": np.matrix,
    "nested lists": lambda t: t.tolist(),
    "a transpose": lambda t: np.ascontiguousarray(t.T).T,
}


@pytest.mark.parametrize("backend", ["graph", "numpy", "c"])
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_layouts_change_nothing(backend: str) -> None:
    """exp and products keep 15 digits, whatever memory or precision the same numbers come in."""
    graph = symad.value_and_gradient(symad.trace(lambda a: (np.exp(a) @ a.T).sum(), [(4, 3)]), 0)
    f = graph if backend == "graph" else lower(graph, backend)
    value = float((np.exp(TABLE) @ TABLE.T).sum())
    slope = np.exp(TABLE) * TABLE.sum(axis=0) + np.exp(TABLE).sum(axis=0)
    for name, layout in LAYOUTS.items():
        given = layout(TABLE)
        found = f(given)
        np.testing.assert_allclose(float(found[0]), value, rtol=1e-13, err_msg=name)
        np.testing.assert_allclose(np.asarray(found[1], float), slope, rtol=1e-13, err_msg=name)
        assert np.array_equal(np.asarray(given, float), TABLE), name


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


@pytest.mark.parametrize("route", ROUTES)
def test_tensors_that_numpy_cannot_read_are_refused_by_name(route: str) -> None:
    """One of a type that NumPy has not, and one without values: PyTorch's reason is told."""
    torch = pytest.importorskip("torch")
    name, f = "x" if route == "packed" else "speed", ROUTES[route]()
    with pytest.raises(EvaluationError, match=f"{name} was given a torch.Tensor .*BFloat16"):
        f(torch.ones(3, dtype=torch.bfloat16))
    with pytest.raises(EvaluationError, match=f"{name} was given a torch.Tensor"):
        f(torch.ones(3, device="meta"))
