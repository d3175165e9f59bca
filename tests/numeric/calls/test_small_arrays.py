"""Functions of few numbers in arrays on backend "c": compiled as scalars, with arrays that are read in C."""

from __future__ import annotations

import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import symad
from symad import functions as F
from symad.numeric import lower
from symad.numeric.scalars import quick_calls

MATRIX = np.array([[2.0, 1, 0], [0, 3, 1], [1, 0, 2]])

FUNCTIONS = {
    "vector": (lambda x: np.stack([x[0] * x[1], np.sin(x[2]) * x[0], x[1] ** 2 + x[2]]), [(3,)]),
    "value": (lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2, [(2,)]),
    "matrix": (lambda x: MATRIX @ np.exp(-x), [(3,)]),
    "two": (lambda a, b: (a @ b, np.sum(a * a), {"t": b.T}), [(2, 3), (3, 2)]),
    "scalar": (lambda s, u: s * u + np.cumsum(u), [(), (4,)]),
    "cube": (lambda u: np.transpose(u, (2, 0, 1)) * 2, [(2, 3, 2)]),
    "softmax": (lambda z: F.softmax(z, axis=-1), [(4,)]),
    "choice": (lambda u: np.where(u > 0, np.sqrt(u), -u), [(5,)]),
    "constant": (lambda u: np.stack([u[0], 2.0 + 0 * u[0]]), [(2,)]),
}
"""Functions with the shapes of their arguments; NumPy computes them."""


def leaves(result):
    if isinstance(result, dict):
        result = tuple(result.values())
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, tuple) else [result]


def by_numpy(name, values):
    if name == "softmax":
        e = np.exp(values[0] - values[0].max())
        return e / e.sum()
    return FUNCTIONS[name][0](*values)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_of_every_kind_give_the_same(name) -> None:
    f, shapes = FUNCTIONS[name]
    kernel = lower(symad.trace(f, shapes), "c")
    rng = np.random.default_rng(3)
    values = [rng.integers(1, 9, shape) / 4.0 for shape in shapes]
    wide = [np.zeros((*shape[:-1], 2 * shape[-1])) if shape else 0 for shape in shapes]
    for value, room, shape in zip(values, wide, shapes, strict=True):
        if shape:
            room[..., ::2] = value
    given = {
        "as they are": values,
        "Fortran order": [np.asarray(v, order="F") for v in values],
        "every second": [
            room[..., ::2] if shape else v for room, v, shape in zip(wide, values, shapes, strict=True)
        ],
        "float32": [np.asarray(v, np.float32) for v in values],
        "big-endian": [np.asarray(v).astype(">f8") for v in values],
        "lists": [np.asarray(v).tolist() for v in values],
        "read-only": [
            np.frombuffer(np.asarray(v).tobytes()).reshape(s) for v, s in zip(values, shapes, strict=True)
        ],
        "subclass": [
            np.asarray(v).view(np.recarray) if s else v for v, s in zip(values, shapes, strict=True)
        ],
    }
    wanted = leaves(by_numpy(name, values))
    for how, arguments in given.items():
        found = leaves(kernel(*arguments))
        for one, other in zip(found, wanted, strict=True):
            assert np.shape(one) == np.shape(other), how
            np.testing.assert_allclose(one, other, rtol=1e-14, err_msg=how)


def test_gradients_agree_with_numpy_form() -> None:
    for f, shapes in FUNCTIONS.values():
        total = symad.trace(lambda *u, f=f: sum(np.sum(np.sin(part)) for part in leaves(f(*u))), shapes)
        rng = np.random.default_rng(5)
        values = [rng.uniform(0.2, 1.0, shape) for shape in shapes]
        graph = symad.value_and_gradient(total)
        for packed in (False, True):
            given = [np.concatenate([np.ravel(v) for v in values])] if packed else values
            fast, slow = (lower(graph, b, packed=packed)(*given) for b in ("c", "numpy"))
            for one, other in zip(leaves(fast), leaves(slow), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("packed", [False, True])
def test_arrays_are_read_without_python(packed) -> None:
    graph = symad.jacobian(symad.trace(FUNCTIONS["vector"][0], [(3,)]))
    kernel, x = lower(graph, "c", packed=packed), np.ones(3)
    if quick_calls._maker() is None:
        pytest.skip("no C compiler or no headers of Python")
    calls = []
    gc.disable()  # a collection may call functions of other libraries
    sys.setprofile(lambda frame, event, arg: event == "call" and calls.append(frame.f_code.co_name))
    try:
        kernel(x)
    finally:
        sys.setprofile(None)
        gc.enable()
    assert len(calls) <= 1, calls  # the function that makes the array of the result


def test_sparse_results_have_the_structure_of_the_graph() -> None:
    ring = np.eye(9) - np.roll(np.eye(9), 1, 1)
    graph = symad.jacobian(symad.trace(lambda x: ring @ np.sin(x), [(9,)]), sparse=True)
    kernel, x = lower(graph, "c"), np.linspace(-1, 1, 9)
    first, second = kernel(x), kernel(2 * x)
    assert first.nnz == 18 and not np.shares_memory(first.data, second.data)
    np.testing.assert_allclose(first.toarray(), ring * np.cos(x), rtol=1e-15)
    np.testing.assert_allclose(second.toarray(), ring * np.cos(2 * x), rtol=1e-15)


def test_wrong_arguments_are_named() -> None:
    kernel = lower(symad.trace(lambda alpha, beta: alpha @ beta, [(2, 3), (3,)]), "c")
    with pytest.raises(ValueError, match=r"beta must have shape \(3,\), not \(4,\)"):
        kernel(np.ones((2, 3)), np.ones(4))
    with pytest.raises(TypeError, match="beta"):
        kernel(np.ones((2, 3)), np.array(["a", "b", "c"]))
    with pytest.raises(TypeError):
        kernel(np.ones((2, 3)))
    assert np.array_equal(kernel(beta=np.ones(3), alpha=np.ones((2, 3))), [3, 3])


def test_singular_matrices_and_indices_out_of_range_raise_numpys_errors() -> None:
    solve = lower(symad.trace(lambda a, b: np.linalg.solve(a, b), [(3, 3), (3,)]), "c")
    b = np.array([1.0, 2, 3])
    np.testing.assert_allclose(solve(MATRIX, b), np.linalg.solve(MATRIX, b), rtol=1e-14)
    with pytest.raises(np.linalg.LinAlgError):
        solve(np.zeros((3, 3)), b)
    nearly = np.array([[2.0, -2, -6], [2, 3, 4], [0, 3, 6]])  # the last pivot is 0 with or without rounding
    if np.linalg.slogdet(nearly).sign:
        assert np.array_equal(solve(nearly, b), np.linalg.solve(nearly, b))
    pick = lower(symad.trace(lambda u, k: F.lookup(u, k), [(3,), (2,)]), "c")
    assert pick(b, [2, 0]).tolist() == [3, 1]
    with pytest.raises(IndexError):
        pick(b, [3, 0])


def test_results_own_their_memory_in_every_thread() -> None:
    kernel = lower(symad.value_and_gradient(symad.trace(lambda u: np.sum(u**3), [(4,)])), "c")
    u = np.arange(4.0)
    first = kernel(u)[1]
    second = kernel(2 * u)[1]
    assert np.array_equal(first, 3 * u**2) and np.array_equal(second, 12 * u**2)
    first[:] = 0
    assert np.array_equal(kernel(u)[1], 3 * u**2) and np.array_equal(u, np.arange(4.0))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: kernel([k] * 4)[0], range(200)))
    assert found == [4.0 * k**3 for k in range(200)]
