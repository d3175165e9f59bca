"""Functions of every size, with values by NumPy, for tests of the generators' limits.

Each case is a family of functions of a size n, which counts inputs, outputs, terms of a sum, nested calls
and more. A case gives the function, its inputs, and what NumPy computes from the formula, without symad.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import sympy as sp

import symad
from symad.numeric import lower
from tests.gpu.cupy_standin import installed

SMALL = (1, 2, *range(62, 67), *range(127, 131), *range(199, 203), *range(253, 259))
"""Sizes at which CPython, NumPy, C and CUDA have limits: bits of words, axes, bytes, arguments, brackets."""

SMALL_IN_C = {True: (1, 2, 64, 130, 258), False: (1, 2, 66)}
"""Sizes for compiled code of numbers and of arrays, of which a compiler takes about 0.1 s for each kernel."""

SMALL_ON_GPU = (1, 2, 64, 66, 130, 202, 258)
"""Sizes for code of CuPy, one beyond each limit: NumPy stands in for the device, which takes long."""

LARGE = (1000, 5000)

WAYS = {
    "numpy": ("numpy", "fast"),
    "plain": ("numpy", "plain"),
    "c": ("c", "fast"),
    "runs": ("runs", "fast"),
    "cupy": ("cupy", "fast"),
}
"""Backends and styles."""


@dataclass(frozen=True)
class Case:
    """A function, its inputs, and its results at values of the inputs by NumPy; batch axes lead in both."""

    f: Any
    inputs: tuple[sp.Basic, ...]
    expected: Callable[..., tuple[Any, ...]]
    scalar: bool = True
    """Whether inputs are numbers, so that arrays of points may be given."""
    least: float = 0.5
    most: float = 1.5


def sizes_of(case: Case, way: str) -> tuple[int, ...]:
    """The small sizes of a case; none where a backend takes no arrays."""
    if way == "runs" and not case.scalar:
        return ()
    return {"c": SMALL_IN_C[case.scalar], "cupy": SMALL_ON_GPU}.get(way, SMALL)


def _letters(n: int, name: str = "a") -> tuple[sp.Symbol, ...]:
    return tuple(sp.symbols(f"{name}0:{n}", real=True))


def inputs(n: int) -> Case:
    """Σ k a_k² of n inputs."""
    s = _letters(n)
    f = sp.Add(*[(k + 1) * v**2 for k, v in enumerate(s)])
    return Case(f, s, lambda *a: (sum((k + 1) * v**2 for k, v in enumerate(a)),))


def slopes(n: int) -> Case:
    """The gradient of Σ a_k² a_0: n inputs and n outputs."""
    s = _letters(n)
    f = symad.gradient(sp.Add(*[s[0] * v**2 for v in s]), s)

    def expected(*a: Any) -> tuple[Any, ...]:
        first = 2 * a[0] ** 2 + sum(v**2 for v in a)
        return (first, *[2 * a[0] * v for v in a[1:]])

    return Case(f, s, expected)


def first_factor(n: int) -> Case:
    """Σ a_0 a_k: products in the terms of one sum, each read once."""
    s = _letters(n)
    return Case(sp.Add(*[s[0] * v for v in s]), s, lambda *a: (sum(a[0] * v for v in a),))


def outputs(n: int) -> Case:
    """(x + k) x for n numbers k, as a tuple of results."""
    x, y = sp.symbols("x y", real=True)
    f = [(x + k) * y for k in range(n)]
    return Case(f, (x, y), lambda x, y: tuple((x + k) * y for k in range(n)))


def vector(n: int) -> Case:
    """The same as a column."""
    x, y = sp.symbols("x y", real=True)
    f = sp.Matrix([(x + k) * y for k in range(n)])
    return Case(f, (x, y), lambda x, y: (np.stack([(x + k) * y for k in range(n)], axis=-1)[..., None],))


def mixed_outputs(n: int, inputs: int) -> Case:
    """Numbers, columns and conditions of the first and the last of some inputs."""
    s = _letters(inputs)
    x, y = s[0], s[-1]
    f = [e for k in range(n) for e in ((x + k) * y, sp.Matrix([x + k, y, x * y + k]), x < y + k)]

    def expected(*a: Any) -> tuple[Any, ...]:
        x, y = a[0], a[-1]
        rows = [((x + k) * y, np.stack([x + k, y, x * y + k], -1)[..., None], x < y + k) for k in range(n)]
        return tuple([e for row in rows for e in row])

    return Case(f, s, expected)


def statements(n: int) -> Case:
    """n steps s -> cos(s + x), s x by turns, each read twice, so that each has a line."""
    x, y = sp.symbols("x y", real=True)

    def steps(x: Any, y: Any) -> Any:
        s = y
        for k in range(n):
            s = (s + x) / (2 + s * x) if k % 2 else x / (1 + s * s)
        return s

    return Case(symad.trace(steps, [x, y]), (x, y), lambda x, y: (steps(x, y),))


def terms(n: int) -> Case:
    """Σ k x^... of n different terms of two inputs: sin(k x + y)."""
    x, y = sp.symbols("x y", real=True)
    f = sp.Add(*[sp.sin(k * x + y) for k in range(n)])
    return Case(f, (x, y), lambda x, y: (sum(np.sin(k * x + y) for k in range(n)),))


def factors(n: int) -> Case:
    """A product of n different factors."""
    x, y = sp.symbols("x y", real=True)
    f = sp.Mul(*[1 + x / (k + 1) ** 2 + y / (k + 2) ** 3 for k in range(n)])

    def expected(x: Any, y: Any) -> tuple[Any, ...]:
        made = 1.0
        for k in range(n):
            made = made * (1 + x / (k + 1) ** 2 + y / (k + 2) ** 3)
        return (made,)

    return Case(f, (x, y), expected)


def extremes(n: int) -> Case:
    """The largest of n lines, of which different ones are the largest in different places."""
    x, y = sp.symbols("x y", real=True)

    def largest(x: Any, y: Any) -> Any:
        return reduce(np.maximum, [(k - n / 2) / n * x - (k / n) ** 2 * y for k in range(n)])

    return Case(symad.trace(largest, [x, y]), (x, y), lambda x, y: (largest(x, y),))


def pieces(n: int) -> Case:
    """A function of n pieces."""
    x, y = sp.symbols("x y", real=True)
    ends = [0.5 + (k + 1) / n for k in range(n - 1)]
    f = sp.Piecewise(*[(k + x * y, x < e) for k, e in enumerate(ends)], (n - 1 + x * y, True))

    def expected(x: Any, y: Any) -> tuple[Any, ...]:
        return (np.searchsorted(ends, x, side="right") + x * y,)

    return Case(f, (x, y), expected)


def conditions(n: int) -> Case:
    """One condition of n parts."""
    x, y = sp.symbols("x y", real=True)
    f = sp.Piecewise((x * y, sp.And(*[x > (k % 97) / 100 + k / 1e7 for k in range(n)])), (x - y, True))
    bound = max((k % 97) / 100 + k / 1e7 for k in range(n))
    return Case(f, (x, y), lambda x, y: (np.where(x > bound, x * y, x - y),))


def nested(n: int) -> Case:
    """n calls of functions in each other."""
    x = sp.Symbol("x", real=True)

    def calls(s: Any) -> Any:
        for k in range(n):
            s = (np.sin, np.cos, np.arctan)[k % 3](s)
        return s

    return Case(symad.trace(calls, [x]), (x,), lambda x: (calls(x),))


def nested_choices(n: int) -> Case:
    """n choices in each other."""
    x, y = sp.symbols("x y", real=True)

    def chosen(x: Any, y: Any) -> Any:
        s = x * y
        for k in range(n):
            s = np.where(x > 0.5 + (k + 1) / (n + 1), s, k + y)
        return s

    return Case(symad.trace(chosen, [x, y]), (x, y), lambda x, y: (chosen(x, y),))


def nested_differences(n: int) -> Case:
    """n differences x - (y - (x - ...)): brackets in each other."""
    x, y = sp.symbols("x y", real=True)

    def brackets(x: Any, y: Any) -> Any:
        s = x
        for k in range(n):
            s = (y, x)[k % 2] * (k % 5) - s / 2
        return s

    return Case(symad.trace(brackets, [x, y]), (x, y), lambda x, y: (brackets(x, y),))


def name(n: int) -> Case:
    """Inputs with names of n characters that differ in the last one."""
    x, y = (sp.Symbol("q" * (n - 1) + end, real=True) for end in "xy")
    return Case(x * sp.sin(y), (x, y), lambda x, y: (x * np.sin(y),))


def arrays(n: int) -> Case:
    """Σ k u_k · v of n vectors u_k."""
    u = [(3,)] * n
    f = symad.trace(lambda *u: sum((k + 1) * (v @ u[0]) for k, v in enumerate(u)), u)
    return Case(f, f.inputs, lambda *u: (sum((k + 1) * (v @ u[0]) for k, v in enumerate(u)),), scalar=False)


def array_slopes(n: int) -> Case:
    """The gradient of Σ u_k · u_k: n vectors in, n vectors out."""
    f = symad.trace(lambda *u: sum((k + 1) * (v @ v) for k, v in enumerate(u)), [(3,)] * n)
    f = symad.gradient(f, f.inputs)
    return Case(f, f.inputs, lambda *u: tuple(2 * (k + 1) * v for k, v in enumerate(u)), scalar=False)


def array_terms(n: int) -> Case:
    """A sum of n vectors sin(k u)."""
    f = symad.trace(lambda u: sum(np.sin((k + 1) * u) for k in range(n)), [(3,)])
    return Case(f, f.inputs, lambda u: (sum(np.sin((k + 1) * u) for k in range(n)),), scalar=False)


def array_parts(n: int) -> Case:
    """n vectors side by side."""
    f = symad.trace(lambda u: np.concatenate([np.sin(u) * k for k in range(n)]), [(3,)])
    return Case(f, f.inputs, lambda u: (np.concatenate([np.sin(u) * k for k in range(n)]),), scalar=False)


def array_rows(n: int) -> Case:
    """n vectors above each other, each times its entry of a vector."""
    f = symad.trace(lambda u: np.stack([u * u[0] + k for k in range(n)]), [(3,)])
    return Case(f, f.inputs, lambda u: (np.stack([u * u[0] + k for k in range(n)]),), scalar=False)


def array_outputs(n: int) -> Case:
    """n vectors as n results."""
    f = symad.trace(lambda u: tuple(np.cos(u + k) for k in range(n)), [(3,)])
    return Case(f, f.inputs, lambda u: tuple(np.cos(u + k) for k in range(n)), scalar=False)


def array_nested(n: int) -> Case:
    """n calls in each other, of vectors."""

    def calls(u: Any) -> Any:
        for k in range(n):
            u = (np.sin, np.cos, np.arctan)[k % 3](u)
        return u

    f = symad.trace(calls, [(3,)])
    return Case(f, f.inputs, lambda u: (calls(u),), scalar=False)


def length(n: int) -> Case:
    """One vector of n numbers: value and gradient of Σ u_k^3 u_0."""
    f = symad.value_and_gradient(symad.trace(lambda u: np.sum(u**3) * u[0], [(n,)]))

    def expected(u: Any) -> tuple[Any, ...]:
        slope = 3 * u**2 * u[0]
        slope[0] += np.sum(u**3)
        return np.sum(u**3) * u[0], slope

    return Case(f, f.inputs, expected, scalar=False)


def entries(n: int) -> Case:
    """A vector of n numbers, its entries read one by one."""
    f = symad.trace(lambda u: sum(np.sin(u[k]) * u[0] for k in range(n)), [(n,)])
    return Case(f, f.inputs, lambda u: (np.sum(np.sin(u)) * u[0],), scalar=False)


CASES: dict[str, Callable[[int], Case]] = {
    f.__name__: f
    for f in (
        inputs, first_factor, slopes, outputs, vector, statements, terms, factors, extremes, pieces,
        conditions, nested, nested_choices, nested_differences, name, arrays, array_slopes, array_terms,
        array_parts, array_rows, array_outputs, array_nested, length, entries,
    )
}  # fmt: skip


def compare(
    case: Case, way: str, batched: bool = False, packed: bool = False, dtype: str = "float64"
) -> None:
    """Lowers a case and compares its results with NumPy's."""
    backend, style = WAYS[way]
    rng = np.random.default_rng(len(case.inputs))
    shapes = [getattr(s, "shape", ()) for s in case.inputs]
    points = (3,) if batched and case.scalar else ()
    values = [rng.uniform(case.least, case.most, (*points, *map(int, shape))) for shape in shapes]
    wanted = case.expected(*values)
    ordered = {} if hasattr(case.f, "inputs") else {"inputs": case.inputs}
    with installed() as cp:
        kernel = lower(case.f, backend, dtype, packed=packed, style=style, **ordered)
        given = [np.concatenate([np.ravel(v) for v in values])] if packed else values
        if not points and not packed and backend != "cupy":
            given = [float(v) if np.ndim(v) == 0 else v for v in given]
        if backend == "cupy":
            given = [cp.asarray(v) for v in given]
        found = kernel(*given)
        flat = [np.asarray(v.get() if hasattr(v, "get") else v) for v in _leaves(found)]
    if packed:
        flat = [np.concatenate([np.ravel(v) for v in flat])]
        wanted = [np.concatenate([np.ravel(v) for v in wanted])]
    assert len(flat) == len(wanted)
    tolerance = 1e-11 if dtype == "float64" else 1e-4
    for one, other in zip(flat, wanted, strict=True):
        assert one.shape == np.shape(other) or packed
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def _leaves(result: Any) -> list[Any]:
    return [leaf for part in result for leaf in _leaves(part)] if isinstance(result, tuple) else [result]
