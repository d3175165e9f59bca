"""Errors of calls name the arguments as the user wrote them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import sympy as sp

import symad
from symad.errors import EvaluationError, LoweringError, ShapeError, TraceError
from symad.numeric import lower

x, y = sp.symbols("x y", real=True)
BACKENDS = ["graph", "numpy", "plain", "c", "runs"]


def made(graph: Any, backend: str) -> Any:
    if backend == "graph":
        return graph
    return lower(graph, style="plain") if backend == "plain" else lower(graph, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_points_that_do_not_broadcast(backend: str) -> None:
    f = made(symad.trace(x * y, inputs=[x, y]), backend)
    with pytest.raises((ShapeError, ValueError), match=r"do not broadcast together: x \(2,\), y \(3,\)"):
        f(np.ones(2), np.ones(3))


@pytest.mark.parametrize("backend", BACKENDS)
def test_ragged_lists(backend: str) -> None:
    f = made(symad.trace(x * y, inputs=[x, y]), backend)
    with pytest.raises((EvaluationError, ValueError), match="y was given nested lists"):
        f(1.0, [[1.0, 2.0], [3.0]])
    if backend != "runs":
        g = made(symad.trace(lambda a, b: a @ b, [(2, 3), (3, 4)]), backend)
        with pytest.raises((EvaluationError, ValueError), match="a was given nested lists"):
            g([[1.0, 2.0, 3.0], [1.0]], np.ones((3, 4)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_integers(backend: str) -> None:
    m = sp.Symbol("m", integer=True)
    f = made(symad.trace(m * x, inputs=[x, m]), backend)
    assert f(1.5, 2.0) == 3.0
    for wrong in (1.5, np.array([1.0, 0.5])):
        with pytest.raises(EvaluationError, match="m is an integer, but was given"):
            f(1.5, wrong)


def test_products_and_sums_of_wrong_shapes_name_the_inputs() -> None:
    with pytest.raises(ShapeError, match=r"differ, the factors are a \(2, 3\) and b \(2, 4\)"):
        symad.trace(lambda a, b: a @ b, [(2, 3), (2, 4)])
    with pytest.raises(ShapeError, match=r"a \(2, 3\), b \(2, 4\) do not broadcast together"):
        symad.trace(lambda a, b: a + b, [(2, 3), (2, 4)])
    with pytest.raises(ShapeError, match=r"of a \(2, 3\), b \(2, 4\): the axis 'j' has sizes 3 and 2"):
        symad.trace(lambda a, b: np.einsum("ij,jk->ik", a, b), [(2, 3), (2, 4)])
    with pytest.raises(ShapeError, match=r"a \(2, 3\), \(4,\) do not broadcast together"):
        symad.trace(lambda a: a + np.ones(4), [(2, 3)])


@pytest.mark.parametrize("backend", ["graph", "numpy", "plain", "c"])
def test_a_vector_for_a_column(backend: str) -> None:
    column = sp.MatrixSymbol("M", 3, 1)
    function = made(symad.trace(column.T * column), backend)
    assert function(np.ones(3)) == function(np.ones((3, 1))) == 3  # as lambdify's code takes it
    for other in (np.ones((1, 3)), np.ones(4)):
        with pytest.raises(ValueError, match=r"M (must have|has) (shape \(3, 1\)|size 3)"):
            function(other)


def test_sums_over_indices_and_dimensions() -> None:
    i, n = sp.symbols("i n", integer=True, positive=True)
    a, k = sp.IndexedBase("a", real=True), sp.Idx("k", (0, 3))
    with pytest.raises(TraceError, match="the index k of k is free"):
        symad.trace(a[k] ** 2)
    assert symad.trace(sp.Sum(a[k] ** 2, (k, 0, 3)))(np.arange(4.0)) == 14.0
    assert symad.trace(sp.Sum(a[i] ** 2, (i, 0, n - 1)))(np.arange(5.0)) == 30.0


def test_zeta_of_scipy() -> None:
    one = symad.trace(lambda t: scipy.special.zeta(t), [()])
    two = symad.trace(lambda t: scipy.special.zeta(2, t), [()])
    assert one(3.0) == pytest.approx(1.2020569031595942, rel=1e-14)
    assert lower(one)(3.0) == pytest.approx(1.2020569031595942, rel=1e-14)
    assert two(1.0) == pytest.approx(np.pi**2 / 6, rel=1e-14)
    assert symad.gradient(two)(1.0) == pytest.approx(-2 * 1.2020569031595942, rel=1e-14)
    assert symad.gradient(one)(3.0) == pytest.approx(-0.19812624288563685, rel=1e-12)  # ζ'(3), mpmath
    with pytest.raises(TraceError, match=r"scipy\.linalg\.sqrtm|a NumPy array") as caught:
        symad.trace(lambda a: scipy.linalg.sqrtm(a), [(3, 3)])
    assert "_zeta" not in str(caught.value)


@dataclass
class Params:
    """Weights."""

    w: Any
    b: Any


def test_representations_list_the_arguments() -> None:
    f = symad.trace(lambda p, t: np.sum(p.w * t) + p.b, inputs=[Params((2,), ()), (2,)])
    assert repr(lower(f)) == "<Kernel f(p, t), backend='numpy', dtype='float64'>"
    grouped = lower(symad.trace(x * y, inputs=[[x, y]]))
    assert repr(grouped).count("\n") == 0
    with pytest.raises(EvaluationError, match="masked"):
        lower(f)(Params(np.ones(2), 1.0), np.ma.array([1.0, 2.0], mask=[0, 1]))


def test_arguments_in_place_of_a_backend_are_an_error_that_says_where_they_go():
    x, y = sp.symbols("x y")
    for given in [(x * y, [x, y]), ([x, y], x * y), (x * y, (x, y))]:
        with pytest.raises(LoweringError, match=r"lower\(f, inputs=\[x, y\]\)"):
            lower(*given)


def test_missing_values_are_told_with_the_names_that_the_user_wrote():
    """Also names of LaTeX, whose backslashes generated code cannot hold."""
    w, b = sp.Symbol(r"\bar{W}", real=True), sp.Symbol(r"\beta_{1}", real=True)
    told = r"takes 2 values \(\\bar\{W\}, \\beta_\{1\}\), but 1 was given; missing: \\beta_\{1\}"
    for f, error in ((lower(w * b), TypeError), (symad.trace(w * b), EvaluationError)):
        with pytest.raises(error, match=told):
            f(1.0)
    for f, error in ((lower(x * y), TypeError), (symad.trace(x * y), EvaluationError)):
        with pytest.raises(error, match=r"but 3 were given"):
            f(1.0, 2.0, 3.0)


def test_a_c_function_is_not_saved_as_python(tmp_path):
    """Its Python text would be another function, without C."""
    kernel = lower(x * y, "c")
    if not kernel.c_source:
        pytest.skip("no C compiler")
    with pytest.raises(LoweringError, match=r"f\.py: f is a C function; save it as \.c .*backend='numpy'"):
        kernel.save(tmp_path / "f.py")
    assert not [*tmp_path.iterdir()]
    kernel.save(tmp_path / "f.c")
    assert "symad_f" in (tmp_path / "f.c").read_text()
