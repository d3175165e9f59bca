"""Calls of compiled scalar functions with arguments read in C: the same results as through Python."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower
from symad.numeric.compiler import c_calls, c_compiler
from symad.numeric.compiler.c_compiler import compiler
from symad.numeric.scalars import quick_calls

pytestmark = pytest.mark.skipif(
    compiler() is None or quick_calls._maker() is None, reason="needs a compiler and Python's headers"
)

x, y = sp.symbols("x y")
FORMS = {
    "a number": x * y + 2 * x,
    "a tuple": [x * y, x - y, sp.Integer(3)],
    "a tuple of one": [x / y],
    "a dict": {"a": x + y, "b": x * 2},
    "a matrix": sp.Matrix([[x, y, 1], [x * y, 2, x]]),
    "both": [x - y, sp.Matrix([x, y])],
    "a gradient": symad.gradient(x**2 * y + x, (x, y)),
    "a Hessian": symad.hessian(x**2 * y**3, (x, y)),
}


def reference(form: Any, a: Any, b: Any) -> Any:
    """The graph's own evaluation, at each point."""
    graph = symad.trace(form)
    a, b = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
    return [leaves(graph(float(u), float(v))) for u, v in zip(a.ravel(), b.ravel(), strict=True)]


def leaves(result: Any) -> list[Any]:
    if isinstance(result, dict):
        result = tuple(result.values())
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, tuple) else [result]


ARGUMENTS = {
    "floats": (0.5, 2.0),
    "ints": (3, -2),
    "numpy floats": (np.float64(0.5), np.float64(1.5)),
    "arrays without axes": (np.array(0.5), 2.0),
    "vectors": (np.linspace(0, 1, 7), np.linspace(1, 2, 7)),
    "a vector and a number": (np.linspace(0, 1, 7), 2),
    "a number and a vector": (1.5, np.linspace(1, 2, 7)),
    "one point": (np.array([0.3]), np.array([0.7])),
    "strides": (np.linspace(0, 1, 14)[::2], np.linspace(1, 2, 7)[::-1]),
    "no writing": (np.broadcast_to(0.3, (5,)), np.linspace(1, 2, 5)),
    "single precision": (np.linspace(0, 1, 4, dtype=np.float32), 0.5),
    "integers": (np.arange(4), np.arange(1, 5)),
    "other byte order": (np.linspace(0, 1, 4).astype(">f8"), np.linspace(1, 2, 4)),
    "between words": (np.frombuffer(b"-" + np.linspace(0, 1, 4).tobytes(), np.uint8)[1:].view(float), 2.0),
    "a grid": (np.linspace(0, 1, 3)[:, None], np.linspace(1, 2, 4)),
    "many points": (np.linspace(0, 1, 2500), np.linspace(1, 2, 2500)),
    "a list": ([0.1, 0.2], [1.0, 2.0]),
    "a vector of one and many": (np.array([0.3]), np.linspace(1, 2, 4)),
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("backend", ["c", "runs"])
def test_every_argument_gives_what_the_graph_gives(
    backend: str, form: Any, arguments: tuple[Any, Any]
) -> None:
    found = leaves(lower(form, backend)(*arguments))
    expected = reference(form, *arguments)
    batch = np.broadcast_shapes(*(np.shape(a) for a in arguments))
    for k, value in enumerate(found):
        assert np.shape(value) == (*batch, *np.shape(expected[0][k]))
        rows = np.asarray(value).reshape(len(expected), *np.shape(expected[0][k]))
        for row, right in zip(rows, expected, strict=True):
            np.testing.assert_allclose(row, right[k], rtol=1e-14)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("backend", ["c", "runs"])
def test_several_points_at_a_time(backend: str, form: Any) -> None:
    """Batches around the sizes from which on lanes and blocks of lanes are used, of all kinds of columns."""
    kernel, plain = lower(form, backend), lower(form)
    for points in (3, 15, 16, 17, 39, 40, 41, 64, 65, 511, 512, 513, 1030):
        one, two = np.linspace(0.1, 1, 2 * points), np.linspace(2, 1, 3 * points)
        columns = [(one[:points], two[:points]), (one[::2], two[::-3]), (0.7, two[:points]), (one[1::2], 2)]
        for a, b in columns:
            found, wanted = leaves(kernel(a, b)), leaves(plain(a, b))
            for value, right in zip(found, wanted, strict=True):
                assert np.shape(value) == np.shape(right)
                np.testing.assert_allclose(value, right, rtol=1e-14)
            for k, value in enumerate(found):
                assert not any(np.shares_memory(value, other) for other in found[:k])


@pytest.mark.parametrize("backend", ["c", "runs"])
def test_threads_call_one_kernel_with_batches(backend: str) -> None:
    """Each has its own results, though the rows for several points are kept with the kernel."""
    kernel = lower([sp.sin(x * y) + x, x - y], backend)
    wrong = []

    def work(k: int) -> None:
        a = np.linspace(0, 1, 30_000) + k
        right = np.sin(a * 2.0) + a
        for _ in range(20):
            found = kernel(a, 2.0)
            if not np.allclose(found[0], right, rtol=1e-12) or not np.array_equal(found[1], a - 2.0):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_structures_stay() -> None:
    for points in (0.5, np.linspace(0, 1, 3)):
        assert set(lower({"a": x, "b": y}, "c")(points, 2.0)) == {"a", "b"}
        assert isinstance(lower([x, y], "c")(points, 2.0), tuple)
    assert type(lower(x + y, "c")(1.0, 2.0)) is float


def test_no_points_and_no_inputs() -> None:
    assert lower(x * y, "c")(np.zeros(0), 1.0).shape == (0,)
    value, matrix = lower(FORMS["both"], "c")(np.zeros(0), np.zeros(0))
    assert value.shape == (0,) and matrix.shape == (0, 2, 1)
    assert lower(sp.Integer(3), "c")() == 3.0


def test_bad_arguments_are_refused_as_before() -> None:
    kernel, plain = lower(x * y, "c"), lower(x * y)
    for arguments in (
        (1.0,),
        (1.0, 2.0, 3.0),
        ("a", 2.0),
        (1j, 2.0),
        (np.zeros(3), np.zeros(4)),
        (None, 1.0),
    ):
        with pytest.raises((TypeError, ValueError)):
            kernel(*arguments)
    for big in (10**400, Fraction(1, 3)):
        try:
            expected = plain(big, 1.0)
        except (OverflowError, ValueError, TypeError) as error:
            with pytest.raises(type(error)):
                kernel(big, 1.0)
        else:
            assert kernel(big, 1.0) == pytest.approx(float(expected))


def test_packed_vectors() -> None:
    gradient = symad.gradient(x**2 * y, (x, y))
    kernel = lower(gradient, "c", packed=True)
    assert np.array_equal(kernel(np.array([2.0, 3.0])), [12.0, 4.0])
    assert np.array_equal(kernel([2.0, 3.0]), [12.0, 4.0])
    assert np.array_equal(kernel(np.array([2, 3])), [12.0, 4.0])
    assert np.array_equal(kernel(np.array([2.0, 0.0, 3.0])[::2]), [12.0, 4.0])
    with pytest.raises((TypeError, ValueError)):
        kernel(np.zeros(3))


def test_results_own_their_memory() -> None:
    kernel = lower([x, y, x], "c")
    a, b = np.linspace(0, 1, 5), np.linspace(1, 2, 5)
    results = kernel(a, b)
    for one in results:
        one += 1
    assert np.array_equal(results[0], a + 1) and np.array_equal(kernel(a, b)[0], a)
    packed = lower([x, y], "c", packed=True)
    vector = np.array([1.0, 2.0])
    assert not np.shares_memory(packed(vector), vector)
    assert packed(vector) is not packed(vector)


def test_many_inputs_and_results() -> None:
    xs = sp.symbols("x0:60")
    kernel = lower([sum(xs)] + [k * s for k, s in enumerate(xs)], "c")
    values = np.linspace(-1, 1, 60)
    assert np.allclose(kernel(*values.tolist()), [values.sum(), *(np.arange(60) * values)])
    rows = kernel(*[np.array([v, 2 * v]) for v in values])
    assert np.allclose(rows[8], [7 * values[7], 14 * values[7]])


@pytest.mark.thorough
def test_no_reference_is_lost_or_kept() -> None:
    kernel = lower([x * y, x + y], "c")
    a, b = np.linspace(0, 1, 9), 2.5
    before = sys.getrefcount(a), sys.getrefcount(b)
    for arguments in ((a, b), (b, b), (a, "no"), (a, np.zeros(3)), (a[::2], a[::2])):
        for _ in range(50):
            with suppress(TypeError, ValueError):
                kernel(*arguments)
    gc.collect()
    assert (sys.getrefcount(a), sys.getrefcount(b)) == before


@pytest.mark.parametrize("backend", ["c", "runs"])
@pytest.mark.parametrize("short", [20_000, 0])
def test_threads(short: int, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_calls, "MAX_LOCKED", short)
    quick_calls._maker.cache_clear()
    kernel = lower(symad.gradient(sp.sin(x) * y, (x, y)), backend)
    quick_calls._maker.cache_clear()
    wrong: list[float] = []

    def work(seed: float) -> None:
        for k in range(3000):
            v = seed + k * 1e-3
            if k % 100 == 0 and not np.allclose(kernel(np.full(50, v), 2.0)[0], 2 * np.cos(v)):
                wrong.append(v)
            if abs(kernel(v, 2.0)[0] - 2 * np.cos(v)) > 1e-12:
                wrong.append(v)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("packed", [False, True])
def test_without_numpys_headers_buffers_tell_the_same(
    packed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    def kernel() -> Any:
        quick_calls._maker.cache_clear()
        return lower(FORMS["a gradient"], "c", packed=packed)

    by_headers = kernel()
    monkeypatch.setattr(np, "get_include", lambda: str(tmp_path))
    by_buffers = kernel()
    quick_calls._maker.cache_clear()
    vectors = [np.array([2.0, 3.0]), np.array([2.0, 0.0, 3.0])[::2], np.array([3, 2]), [2.0, 3.0]]
    for arguments in [(v,) for v in vectors] if packed else ARGUMENTS.values():
        found, same = by_headers(*arguments), by_buffers(*arguments)
        assert np.array_equal(found, same) and np.shape(found) == np.shape(same)
    with pytest.raises((TypeError, ValueError)):
        by_buffers(np.zeros(3))


@pytest.fixture
def afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing was compiled for calls so far, and no warning was given."""
    monkeypatch.setattr(c_compiler, "_said", set())
    quick_calls._maker.cache_clear()
    yield
    quick_calls._maker.cache_clear()


def test_this_numpys_headers_serve(afresh: None, recwarn: pytest.WarningsRecorder) -> None:
    """No function of NumPy's is missing when the library is loaded, whatever the version."""
    assert quick_calls._library(quick_calls.READERS[0]) is not None
    assert lower(x * y, "c")(2.0, 3.0) == 6.0
    assert not recwarn.list


BROKEN = {
    "a function of another header": ("PyArray_TYPE", "PyArray_TYPE_OF_ANOTHER_HEADER"),
    "a field that is gone": ("byteorder", "order_of_bytes"),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_where_numpys_headers_are_of_no_use_buffers_serve_without_a_word(
    change: tuple[str, str],
    afresh: None,
    monkeypatch: pytest.MonkeyPatch,
    recwarn: pytest.WarningsRecorder,
    tmp_path: Path,
) -> None:
    by_numpy, by_buffers = quick_calls.READERS
    broken = tmp_path / by_numpy
    broken.write_text((c_calls.SOURCES / by_numpy).read_text("utf-8").replace(*change), "utf-8")
    monkeypatch.setattr(quick_calls, "READERS", (str(broken), by_buffers))
    found = lower(FORMS["a gradient"], "c")
    assert quick_calls._maker() is not None
    for arguments in ARGUMENTS.values():
        expected = np.transpose(reference(FORMS["a gradient"], *arguments))
        for value, right in zip(found(*arguments), expected, strict=True):
            np.testing.assert_allclose(np.ravel(value), right, rtol=1e-14)
    assert not recwarn.list


def test_calls_that_go_through_python_say_what_they_cost(
    afresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Once, with the file that is missing; the function itself is compiled."""
    monkeypatch.setattr(quick_calls.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    with pytest.warns(UserWarning, match=r"call .* takes some 10 µs more.*Python\.h is missing") as told:
        kernel = lower(x * y + 1, "c")
        assert (kernel(2.0, 3.0), lower(x * y + 2, "c")(2.0, 3.0)) == (7.0, 8.0)
    assert len(told) == 1 and kernel.native is not None


def test_without_headers_python_reads_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_calls, "_maker", lambda: None)
    for form in FORMS.values():
        found = leaves(lower(form, "c")(*ARGUMENTS["vectors"]))
        for k, right in enumerate(zip(*reference(form, *ARGUMENTS["vectors"]), strict=True)):
            np.testing.assert_allclose(found[k], np.array(right), rtol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["c", "runs"])
def test_names_masks_and_errors_take_the_checked_way(backend: str) -> None:
    """What is neither a float nor a float64 vector is bound and refused by name; the kernel is freed."""
    kernel = lower(x * y + x, backend)
    assert kernel(2.0, 3.0) == kernel(x=2.0, y=3.0) == kernel(2.0, y=3.0) == 8.0
    with pytest.raises(symad.errors.EvaluationError, match="x was given a masked array"):
        kernel(np.ma.masked_array([1.0, 2.0], mask=[True, False]), 1.0)
    with pytest.raises(TypeError, match=r"takes 2 values \(x, y\), but 1 was given; missing: y"):
        kernel(1.0)
    with pytest.raises(symad.errors.EvaluationError, match="'z' is none of them"):
        kernel(x=1.0, z=2.0)
    count = sp.Symbol("count", integer=True)
    whole = lower(x * count, backend, inputs=[x, count])
    assert whole(2.0, 3) == 6.0
    with pytest.raises(symad.errors.EvaluationError, match="count"):
        whole(2.0, 2.5)
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None
