"""Axes without elements and with one: values, gradients, Hessians, sparse ones and batches, on each backend.

Values are compared with NumPy's, derivatives with the evaluation of their graph. A mean of nothing is nan; no
backend raises ZeroDivisionError or NameError, or asks BLAS for a matrix without rows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.graph import Graph
from symad.numeric import lower

Case = tuple[Callable[..., Any], list[str]]

FUNCTIONS: dict[str, Case] = {
    "sums": (lambda a: np.sum(np.sin(a) * np.sum(a)), ["n"]),
    "variance": (lambda a: np.var(a), ["n"]),
    "variances": (lambda a: np.sum(np.var(a, axis=0) ** 2), ["nm"]),
    "deviation": (lambda a: np.std(a), ["n"]),
    "means": (lambda a: np.sum(np.mean(a, axis=1) ** 2), ["nm"]),
    "product": (lambda a, b: np.sum(np.tanh(a @ b)), ["nm", "mn"]),
    "norm": (lambda a: np.linalg.norm(a), ["n"]),
    "cumulated": (lambda a: np.sum(np.cumsum(a) ** 2), ["n"]),
    "differences": (lambda a: np.sum(np.diff(a) ** 2), ["n"]),
    "product of all": (lambda a: np.prod(a), ["n"]),
    "sorted": (lambda a: np.sum(np.sort(a) * np.arange(a.shape[0])), ["n"]),
    "solved": (lambda a, b: np.sum(np.linalg.solve(a + 2 * np.eye(a.shape[0]), b)), ["mm", "mn"]),
    "joined": (lambda a: np.sum(np.concatenate([a, a]) ** 3), ["nm"]),
    "outer": (lambda a, b: np.sum(np.outer(a, b) ** 2), ["n", "m"]),
    "kernel": (lambda a, b: np.sum(np.exp(-np.sum((a[:, None] - b[None]) ** 2, -1))), ["nm", "km"]),
    "clipped": (lambda a: np.sum(np.clip(a, -1, 1) * np.where(a > 0, a, 0)), ["n"]),
}
OWN: dict[str, Case] = {
    "softmax": (lambda a: np.sum(functions.softmax(a) ** 2), ["nm"]),
    "logsumexp": (lambda a: np.sum(functions.logsumexp(a)), ["n"]),
    "scan": (lambda a: np.sum(functions.scan(lambda h, x: np.tanh(h + x), 0.3, a)), ["n"]),
    "scan of vectors": (
        lambda a, b: np.sum(functions.scan(lambda h, x: np.tanh(h @ b + x), np.zeros(a.shape[1]), a) ** 2),
        ["nm", "mm"],
    ),
    "fold": (lambda a: functions.fold(lambda h, x: np.tanh(h + x), 0.3, a), ["n"]),
    "fold of vectors": (
        lambda a: np.sum(functions.fold(lambda h, x: np.tanh(h + x), np.zeros(a.shape[1]), a) ** 2),
        ["nm"],
    ),
}
CONSTANT = {("deviation", 1)}
"""Functions that are 0 everywhere at a size: code that knows it returns 0 where a formula divides 0 by 0."""

SIZES = [(0, 3), (3, 0), (0, 0), (1, 1), (1, 3), (3, 1)]
DERIVED: dict[str, Callable[[Graph], Graph]] = {
    "value": lambda f: f,
    "gradient": symad.value_and_gradient,
    "hessian": symad.hessian,
    "sparse Jacobian": lambda f: symad.jacobian(f, sparse=True),
    "sparse Hessian": lambda f: symad.hessian(f, sparse=True),
    "batch": lambda f: symad.vmap(symad.value_and_gradient(f)),
    "empty batch": symad.vmap,
}


def results(value: Any) -> list[Any]:
    found = value if isinstance(value, tuple) else (value,)
    return [r.toarray() if hasattr(r, "toarray") else np.asarray(r, float) for r in found]


def check_case(name: str, n: int, m: int, derived: list[str], backends: list[str]) -> None:
    function, letters = (FUNCTIONS | OWN)[name]
    shapes = [tuple({"n": n, "m": m, "k": 2}[c] for c in axes) for axes in letters]
    rng = np.random.default_rng(0)
    point = [rng.normal(size=shape) for shape in shapes]
    f = symad.trace(function, shapes)
    for what in derived:
        graph, count = DERIVED[what](f), {"batch": 2, "empty batch": 0}.get(what)
        values = point if count is None else [np.stack([v] * 2)[:count] for v in point]
        with np.errstate(all="ignore"):
            right = [np.asarray(function(*point))] if what == "value" and name in FUNCTIONS else None
            right = results(graph(*values)) if right is None else right
            for backend in backends:
                kernel = lower(graph, style="plain") if backend == "plain" else lower(graph, backend)
                for one, wanted in zip(results(kernel(*values)), right, strict=True):
                    assert one.shape == wanted.shape, (what, backend)
                    if (name, n) in CONSTANT and not np.isnan(one).any():
                        wanted = np.zeros_like(wanted)
                    np.testing.assert_allclose(
                        one, wanted, rtol=1e-12, atol=1e-14, err_msg=f"{what} {backend}"
                    )


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize("name", [*FUNCTIONS, *OWN])
def test_python_code(name: str) -> None:
    for n, m in ((0, 3), (1, 3)):
        check_case(name, n, m, ["gradient", "batch"], ["numpy", "plain"])


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("variance", "value"),
        ("logsumexp", "sparse Hessian"),
        ("joined", "empty batch"),
        ("scan of vectors", "gradient"),
    ],
)
def test_compiled_code(name: str, what: str) -> None:
    check_case(name, 0, 3, [what], ["c"])


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize("name", [*FUNCTIONS, *OWN])
def test_every_size_and_derivative(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    for n, m in SIZES:
        check_case(name, n, m, [*DERIVED], ["numpy", "plain", "c"])
    assert "DGEMM" not in "".join(capfd.readouterr())  # BLAS prints what it refuses, and goes on


n_ = sp.Symbol("n", integer=True, nonnegative=True)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize("style", ["fast", "plain"])
@pytest.mark.parametrize("name", ["variance", "deviation", "sums", "norm"])
def test_sizes_that_are_arguments(name: str, style: str) -> None:
    """A quotient of dimensions is nan or inf, as NumPy's, where a dimension is 0."""
    function, _ = FUNCTIONS[name]
    f = symad.trace(function, [(n_,)])
    for graph in (f, symad.value_and_gradient(f), symad.hessian(f)):
        kernel = lower(graph, style=style)
        for n in (0, 1, 2):
            point = np.arange(n) + 0.5
            with np.errstate(all="ignore"):
                for one, wanted in zip(results(kernel(point)), results(graph(point)), strict=True):
                    np.testing.assert_allclose(one, wanted, rtol=1e-12)


@pytest.mark.parametrize("style", ["fast", "plain"])
def test_folds_of_batches_of_unknown_length(style: str) -> None:
    """A cotangent of the last state that is one number starts a state for each point of the batch."""
    fold, _ = OWN["fold"]
    graph = symad.vmap(symad.value_and_gradient(symad.trace(fold, [(n_,)])))
    point = np.array([[0.2, -0.4, 0.1], [1.0, 0.3, -2.0]])
    for one, wanted in zip(lower(graph, style=style)(point), graph(point), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-12)
