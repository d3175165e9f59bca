"""All functions are called by position or by name, with one signature and the same names in errors."""

from __future__ import annotations

import importlib.util
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import given, lower
from symad.numeric.scale import distribute, sparse_jacobian
from tests.gpu.cupy_agreement import library

x, y, a = sp.symbols("x y a", real=True)
n = sp.Symbol("n", integer=True, positive=True)
SCALAR = symad.trace(x**2 * y, [x, y])
ARRAY = symad.trace(lambda x, y: (x * y).sum(), [(n,), (n,)])
ROWS = symad.trace(lambda x, y: x[1:] * y[:-1], [(3,), (3,)])


def from_file(text_of: Any, folder: Path) -> Any:
    """The last function of a saved .py file, imported as a module."""
    text_of.save(folder / "made.py")
    spec = importlib.util.spec_from_file_location("made", folder / "made.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, text_of.name)


def loaded(graph: Any, folder: Path) -> Any:
    return symad.load(symad.save(graph, folder / "g.json"))


WAYS: dict[str, Callable[[Path], Any]] = {
    "graph": lambda _: SCALAR,
    "loaded graph": lambda folder: loaded(SCALAR, folder),
    "pickled graph": lambda _: pickle.loads(pickle.dumps(SCALAR)),
    "numpy": lambda _: lower(SCALAR),
    "plain": lambda _: lower(SCALAR, style="plain"),
    "c": lambda _: lower(SCALAR, "c"),
    "runs": lambda _: lower(SCALAR, "runs"),
    "loaded kernel": lambda folder: lower(loaded(SCALAR, folder), "c"),
    "pickled kernel": lambda _: pickle.loads(pickle.dumps(lower(SCALAR, "c"))),
    "file": lambda folder: from_file(lower(SCALAR), folder),
    "file of runs": lambda folder: from_file(lower(SCALAR, "runs"), folder),
    "plain file": lambda folder: from_file(lower(SCALAR, style="plain"), folder),
    "arrays": lambda _: ARRAY,
    "arrays, numpy": lambda _: lower(ARRAY),
    "arrays, plain": lambda _: lower(ARRAY, style="plain"),
    "arrays, c": lambda _: lower(ARRAY, "c"),
    "arrays, file": lambda folder: from_file(lower(ARRAY), folder),
    "arrays, file of c": lambda folder: from_file(lower(ARRAY, "c"), folder),
    "in parts": lambda _: distribute(ARRAY, {"x": 0, "y": 0}, rows=2),
    "in parts by Dask": lambda _: distribute(ARRAY, {"x": 0, "y": 0}, scheduler="synchronous", rows=2),
}


@pytest.mark.parametrize("way", WAYS)
def test_calls_signatures_and_errors(way: str, tmp_path: Path) -> None:
    if "Dask" in way:
        pytest.importorskip("dask")
    call = WAYS[way](tmp_path)
    whole = way.startswith(("arrays", "in parts"))
    u, v = (np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])) if whole else (3.0, 5.0)
    right = 32.0 if whole else 45.0
    for value in (call(u, v), call(u, y=v), call(y=v, x=u)):
        np.testing.assert_allclose(value, right)
    assert list(inspect.signature(call).parameters) == ["x", "y"]
    for wrong, named in (
        (lambda: call(x=u), "y"), (lambda: call(u, v, y=v), "y"), (lambda: call(u, v, w=v), "w"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=rf"\b{named}\b"):
            wrong()
    with pytest.raises((TypeError, ValueError), match=r"\by (was|must|has)"):
        call(u, "text")


@pytest.mark.parametrize("backend", ["numpy", "c", "runs", "file"])
def test_packed_kernels(backend: str, tmp_path: Path) -> None:
    """The inputs that ``wrt`` names are one vector x; the others keep their names."""
    f = symad.value_and_gradient(a * x**2 * y, [x, y])
    call = lower(f, packed=True) if backend == "file" else lower(f, backend, packed=True)
    call = from_file(call, tmp_path) if backend == "file" else call
    for value, slope in (call([3.0, 5.0], 2.0), call([3.0, 5.0], a=2.0), call(a=2.0, x=[3.0, 5.0])):
        assert value == 90.0 and slope.tolist() == [60.0, 18.0]
    assert list(inspect.signature(call).parameters) == ["x", "a"]
    for wrong, named in ((lambda: call([3.0, 5.0]), "a"), (lambda: call([1.0], 2.0), "x")):
        with pytest.raises((TypeError, ValueError), match=rf"\b{named}\b"):
            wrong()


def test_kernels_of_a_device() -> None:
    with library() as cp:
        for graph, u, v, right in (
            (SCALAR, 3.0, 5.0, 45.0), (ARRAY, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0], 32.0),
        ):  # fmt: skip
            call = lower(graph, "cupy")
            u, v = cp.asarray(np.array(u)), cp.asarray(np.array(v))
            assert call(y=v, x=u).get() == call(u, v).get() == right
            assert list(inspect.signature(call).parameters) == ["x", "y"]
            with pytest.raises((TypeError, ValueError), match=r"\by\b"):
                call(x=u)
            with pytest.raises(TypeError, match="y is a"):
                call(u, "text")


def test_held_data_and_colors() -> None:
    fixed = given(ROWS, {"y": [4.0, 5.0, 6.0]})
    assert fixed(x=[1.0, 2.0, 3.0]).tolist() == [8.0, 15.0]
    jacobian = sparse_jacobian(ROWS, "x")
    assert jacobian(y=np.array([4.0, 5.0, 6.0]), x=np.ones(3)).toarray().tolist() == [[0, 4, 0], [0, 0, 5]]
    for call, names in ((fixed, ["x"]), (jacobian, ["x", "y"])):
        assert list(inspect.signature(call).parameters) == names
        with pytest.raises((TypeError, ValueError), match=r"\bx\b"):
            call()
