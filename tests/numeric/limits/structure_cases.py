"""Jacobians and Hessians with every structure: no entry, one, a row, a column, a diagonal, all.

A case is drawn from its number: a shape, a pattern, a form of the function (numbers, a vector read entry by
entry, a product with a constant matrix, slices), a derivative, and a way to lower and call it. The expected
matrix comes from NumPy's arithmetic and the formula of the function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sps
import sympy as sp

import symad
from symad.numeric import lower
from tests.gpu.cupy_standin import installed

SHAPES = (
    (1, 1),
    (1, 2),
    (1, 3),
    (3, 1),
    (2, 2),
    (1, 7),
    (7, 1),
    (3, 4),
    (5, 5),
    (2, 9),
    (9, 2),
    (6, 11),
    (12, 12),
)
PATTERNS = ("none", "one", "corner", "row", "column", "last row", "last column", "diagonal", "half", "whole")
FORMS = ("numbers", "group", "entries", "matrix", "parts")
WAYS = ("numpy", "numpy", "numpy", "plain", "plain", "runs", "cupy", "c")
HESSIANS = ("forward-over-reverse", "forward-over-forward", "reverse-over-forward", "reverse-over-reverse")
JACOBIANS = ("auto", "forward", "reverse")

FUNCTIONS: tuple[tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    (lambda v: v, lambda v: 1.0 + 0 * v, lambda v: 0 * v),
    (np.sin, np.cos, lambda v: -np.sin(v)),
    (lambda v: v**2, lambda v: 2 * v, lambda v: 2.0 + 0 * v),
    (np.exp, np.exp, np.exp),
)
"""Functions of a number with their first and second derivatives."""


@dataclass(frozen=True)
class Case:
    """What a number draws."""

    number: int
    shape: tuple[int, int]
    pattern: str
    form: str
    function: int
    hessian: bool
    mode: str
    sparse: bool
    way: str
    packed: bool
    batched: bool

    @property
    def weights(self) -> np.ndarray:
        """The coefficients c_ij of the function; for a Hessian, of the upper triangle."""
        rng = np.random.default_rng(self.number)
        m, n = self.shape
        values = rng.integers(1, 9, (m, n)) / 4.0
        where = np.zeros((m, n), bool)
        match self.pattern:
            case "one":
                where[rng.integers(m), rng.integers(n)] = True
            case "corner":
                where[m - 1, n - 1] = True
            case "row":
                where[rng.integers(m)] = True
            case "column":
                where[:, rng.integers(n)] = True
            case "last row":
                where[m - 1] = True
            case "last column":
                where[:, n - 1] = True
            case "diagonal":
                where[np.arange(m), np.arange(m) % n] = True
            case "half":
                where = rng.random((m, n)) < 0.5
            case "whole":
                where[:] = True
        return values * (where | where.T if self.hessian else where)


def case(number: int) -> Case:
    """The case of a number."""
    rng = np.random.default_rng([number, 7])
    hessian = bool(rng.integers(2))
    shape = SHAPES[rng.integers(len(SHAPES))]
    form = FORMS[rng.integers(len(FORMS))]
    way = WAYS[rng.integers(len(WAYS))]
    if way == "runs":
        form = "numbers"
    packed = bool(rng.integers(2))
    mode = str(rng.choice(HESSIANS if hessian else JACOBIANS))
    if way == "runs" and mode == "forward-over-forward":  # refused by name
        mode = "reverse-over-reverse"
    # arrays of points are for graphs of numbers; colored products are arrays
    batched = bool(rng.integers(2)) and form == "numbers" and not packed and way != "plain"
    if batched:
        mode = "forward-over-reverse" if hessian else "auto"
    return Case(
        number,
        (max(shape),) * 2 if hessian else shape,
        PATTERNS[rng.integers(len(PATTERNS))],
        form,
        int(rng.integers(len(FUNCTIONS))),
        hessian,
        mode,
        way != "runs" and not (batched and way == "cupy") and bool(rng.integers(2)),
        way,
        packed,
        batched,
    )


def rows(made: Case, u: Any) -> list[Any]:
    """The functions Σ_j c_ij g(u_j); for a Hessian, the one function Σ_{i ≤ j} c_ij g(u_i) g(u_j)."""
    g, c = FUNCTIONS[made.function][0], made.weights
    v = [g(one) for one in u]
    m, n = c.shape
    if made.hessian:
        terms = [c[i, j] * v[i] * v[j] for i in range(n) for j in range(i, n) if c[i, j]]
        return [sum(terms) if terms else 3 + 0 * v[0]]
    return [sum((c[i, j] * v[j] for j in range(n) if c[i, j]), 0 * v[0]) for i in range(m)]


def traced(made: Case) -> tuple[Any, dict[str, Any]]:
    """The function, and the argument ``inputs`` of what takes it."""
    n, c = made.shape[1], made.weights
    g = FUNCTIONS[made.function][0]
    if made.form in ("numbers", "group"):
        s = list(sp.symbols(f"x0:{n}", real=True))
        graph = symad.trace(lambda *u: tuple(rows(made, u)), s)
        if made.form == "numbers":
            return graph if not made.hessian else symad.trace(lambda *u: rows(made, u)[0], s), {}
        found = symad.to_sympy(graph)
        found = found[0] if made.hessian else sp.Matrix([list(found)] if n % 2 else list(found))
        return found, {"inputs": [s]}
    if made.hessian:
        upper = np.triu(c)
        forms = {
            "entries": lambda u: rows(made, [u[k] for k in range(n)])[0],
            "matrix": lambda u: g(u) @ upper @ g(u),
            "parts": lambda u: sum(np.sum(upper[k, k:] * g(u[k:])) * g(u[k]) for k in range(n)),
        }
    else:
        forms = {
            "entries": lambda u: np.stack(rows(made, [u[k] for k in range(n)])),
            "matrix": lambda u: c @ g(u),
            "parts": lambda u: np.concatenate([c[:1] @ g(u), c[1:, :1] @ g(u[:1]) + c[1:, 1:] @ g(u[1:])]),
        }
    return symad.trace(forms[made.form], [(n,)]), {}


def expected(made: Case, u: np.ndarray) -> np.ndarray:
    """The Jacobian or Hessian at points u: (..., n)."""
    g, slope, curvature = FUNCTIONS[made.function]
    c = made.weights
    if not made.hessian:
        return c * slope(u)[..., None, :]
    upper = np.triu(c)
    both = upper + upper.T
    diagonal = curvature(u) * np.einsum("ij,...j->...i", both, g(u))
    n = len(c)
    return both * slope(u)[..., None, :] * slope(u)[..., :, None] + np.eye(n) * diagonal[..., None, :]


def stored(made: Case) -> int:
    """The number of entries that may differ from 0."""
    if not made.hessian:
        return int(np.count_nonzero(made.weights))
    probes = np.random.default_rng(1).uniform(0.2, 0.9, (3, made.shape[1]))
    return int(np.count_nonzero(np.abs(expected(made, probes)).sum(axis=0)))


def run(made: Case) -> int:
    """Lowers a case, compares it with NumPy, and returns the number of entries it stores beyond need."""
    f, inputs = traced(made)
    n = made.shape[1]
    derivative = symad.hessian if made.hessian else symad.jacobian
    graph = derivative(f, mode=made.mode, sparse=made.sparse, **inputs)
    u = np.random.default_rng([made.number, 3]).uniform(0.2, 0.9, ((3,) if made.batched else ()) + (n,))
    values = [u] if made.packed or made.form != "numbers" else list(np.moveaxis(u, -1, 0))
    with installed() as cp:
        backend, style = ("numpy", "plain") if made.way == "plain" else (made.way, "fast")
        kernel = lower(graph, backend, packed=made.packed, style=style)
        if backend == "cupy":
            found = kernel(*map(cp.asarray, values))
            found = found.get() if hasattr(found, "get") else found
        else:
            found = kernel(*([float(v) if np.ndim(v) == 0 else v for v in values]))
    extra = 0
    if made.sparse and not made.batched:
        assert sps.issparse(found), type(found)
        extra = found.nnz - stored(made)
        assert len({(i, j) for i, j in zip(*found.nonzero(), strict=True)}) <= found.nnz
        found = found.toarray()
    wanted = expected(made, u)
    assert np.shape(found) == wanted.shape, (np.shape(found), wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    return extra
