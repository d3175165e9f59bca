"""Invalid input is refused by an error that names it, before it leads to a wrong number."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.errors import DerivativeError, EvaluationError, ShapeError, TraceError
from symad.numeric import lower

x, y = sp.symbols("x y", real=True)
f = x**2 * y


# ---- derivatives with respect to what ------------------------------------------------------------


def test_an_input_is_named_once():
    for derivative in (symad.gradient, symad.jacobian, symad.hessian, symad.value_and_gradient):
        with pytest.raises(DerivativeError, match="names an input of f twice"):
            derivative(f, (x, x))
    with pytest.raises(DerivativeError, match="twice"):
        symad.gradient(symad.trace(f), ("x", 0))


def test_a_symbol_of_the_same_name_is_another_symbol():
    """Its derivative would be 0; SymPy keeps symbols of other assumptions apart."""
    other = sp.Symbol("x")
    message = r"x \(without assumptions\) does not occur in the expression, which has another x \(real=True\)"
    with pytest.raises(TraceError, match=message):
        symad.gradient(f, other)
    vector = sp.MatrixSymbol("v", 3, 1)
    with pytest.raises(TraceError, match=r"v \(MatrixSymbol of shape \(4, 1\)\) does not occur"):
        symad.gradient(sp.Trace(vector.T * vector), sp.MatrixSymbol("v", 4, 1))
    assert symad.gradient(f + other, (x, other), inputs=[other, x, y])(1.0, 3.0, 2.0) == (12.0, 1.0)
    assert symad.gradient(f, sp.Symbol("z", real=True))(1.0, 2.0, 3.0) == 0.0


# ---- symbols -------------------------------------------------------------------------------------


@pytest.mark.parametrize("assumption", [{"imaginary": True}, {"real": False}, {"commutative": False}])
def test_symbols_that_are_no_real_numbers(assumption):
    c = sp.Symbol("c", **assumption)
    for made in (lambda: symad.trace(c**2), lambda: symad.trace(lambda c: c, [c])):
        with pytest.raises(TraceError, match="the symbol c"):
            made()


def test_expressions_that_have_no_value_yet():
    for expression, message in [
        (sp.Integral(sp.exp(-(y**2)), (y, x)), r"has no bounds.*\.doit"),
        (sp.Limit(sp.sin(y) / y, y, x), r"unevaluated Limit.*\.doit"),
        (sp.hyper([1, 2, 4], [3], x), "hyper function.*hyperexpand"),
        (x + sp.O(x**2), r"order term.*\.removeO"),
    ]:
        with pytest.raises(TraceError, match=message):
            symad.trace(expression)


def test_lists_that_hold_themselves():
    endless: list = [x]
    endless.append(endless)
    with pytest.raises(TraceError, match="does one contain itself"):
        symad.trace(endless)


# ---- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["1", b"1", 1j, None, {}, set(), float, np.datetime64("2020-01-01"), np.str_("1"), [[1, 2], [3]]]
)
def test_values_that_are_no_numbers(value):
    with pytest.raises(EvaluationError, match="x was given"):
        symad.trace(f)(value, 2.0)


def test_masked_elements_have_no_value():
    graph = symad.trace(np.sum, [(3,)])
    with pytest.raises(EvaluationError, match="x was given a masked array"):
        symad.trace(lambda x: np.sum(x), [(3,)])(np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]))
    assert graph(np.ma.array([1.0, 2.0, 3.0])) == 6.0


def test_matrices_of_numpy_are_arrays():
    square = symad.trace(lambda a: a * a, [(2, 2)])
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert np.array_equal(square(np.matrix(values)), values**2)


def test_points_that_do_not_broadcast():
    with pytest.raises(ShapeError, match=r"x \(3,\), y \(4,\)"):
        symad.trace(f)(np.ones(3), np.ones(4))


# ---- shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape",
    [(float("nan"),), (-3,), (3.0,), (sp.oo,), (sp.nan,), (True,), (1j,), ("n",), (sp.Rational(1, 2),)],
)
def test_shapes_that_are_none(shape):
    with pytest.raises(TraceError, match=r"the input x is given as .* is not a dimension"):
        symad.trace(lambda x: x, [shape])


def test_inputs_that_are_no_list():
    for inputs in (3, {(3,)}, "x", np.ones(3)):
        with pytest.raises(TraceError, match="one entry for each parameter"):
            symad.trace(lambda x: x, inputs)


@pytest.mark.parametrize("number", [-1, 2.5, float("nan"), True, "3", sp.Rational(1, 2)])
def test_dimensions_that_are_no_lengths(number):
    n = sp.Symbol("n", integer=True, positive=True)
    graph = symad.trace(lambda x: np.sum(x), [(n,)])
    with pytest.raises(ShapeError, match="the dimension n was given"):
        graph.at({n: number})
    assert graph.at({n: sp.Integer(3)}).at({}).input_nodes[0].shape == (3,)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.einsum("ij,jk", x), "2 parts of subscripts for 1 operands"),
        (lambda x: np.einsum("ijk->i", x), r"'ijk' does not fit \(3, 4\)"),
        (lambda x: np.einsum("i->i", x), r"'i' does not fit \(3, 4\)"),
        (lambda x: np.einsum("ij->z", x), "each letter of the output"),
        (lambda x: np.einsum("ij->ii", x), "each letter of the output"),
        (lambda x: np.einsum("i;->", x), "is not of letters"),
        (lambda x: np.sum(x, axis=(0, 0)), "name one axis twice"),
        (lambda x: np.sum(x, axis="0"), "axis='0', but"),
        (lambda x: np.transpose(x, (0, 0)), "name one axis twice"),
        (lambda x: np.transpose(x, (0,)), "not an order of the 2 axes"),
        (lambda x: np.split(x, 2), "3 elements of axis 0 do not part into 2"),
        (lambda x: np.repeat(x, -1), "known numbers of repeats"),
        (lambda x: np.repeat(x, [1, -2, 3], axis=0), "known numbers of repeats"),
        (lambda x: x[1.5], "the index 1.5 is not an integer"),
        (lambda x: functions.scan(lambda h, a: h + a, 0.0, x[:, 0], x[:, 1]), r"one tuple \(xs, ys\)"),
    ],
)
def test_arguments_of_functions(function, message):
    with pytest.raises((TraceError, ShapeError, DerivativeError), match=message):
        symad.trace(function, [(3, 4)])


def test_unequal_pieces_are_asked_for_by_array_split():
    pieces = symad.trace(lambda x: np.array_split(x, 2), [(3,)])(np.arange(3.0))
    assert [p.tolist() for p in pieces] == [[0.0, 1.0], [2.0]]


def test_equations_without_their_unknown():
    with pytest.raises(DerivativeError, match="x does not occur in the equations"):
        symad.implicit(y**2 - 1, x)


def test_a_missing_function_of_a_library_is_told_with_its_substitute():
    for call, advice in [
        (lambda a: np.fft.fft(a), "values are real"),
        (lambda a: np.linalg.pinv(a), "symad.functions.pinv"),
        (lambda a: np.sum(a, out=np.zeros(())), "traced values never change"),
        (lambda a: np.arange(3.0)[a], "functions.lookup"),
    ]:
        with pytest.raises(TraceError, match=advice):
            symad.trace(call, [(2, 2)])


def test_huge_shapes_cost_nothing_until_they_are_called():
    graph = symad.value_and_gradient(symad.trace(lambda x: np.sum(x**2), [(10**9, 10**9)]))
    assert "x" in lower(graph).source


@pytest.mark.thorough
def test_numbers_beyond_the_floats():
    """As in IEEE arithmetic: infinite, or 0."""
    arrays = symad.trace(lambda a: a * 2**70 + a / 10**400 + np.array([0, 10**17]), [(2,)])
    for backend in ("numpy", "c", "runs"):
        assert lower(symad.trace(-x * 10**400), backend=backend)(2.0) == -np.inf
        assert lower(symad.trace(x / 10**400), backend=backend)(2.0) == 0.0
        third = lower(symad.trace(x * sp.Rational(10**30 + 1, 3)), backend=backend)
        assert third(3.0) == pytest.approx(1e30, rel=1e-15)
        if backend != "runs":
            expected = 2.0**70 * np.ones(2) + [0, 1e17]
            assert np.array_equal(lower(arrays, backend=backend)(np.ones(2)), expected)
    assert symad.trace(x * 10**400)(2.0) == np.inf


def test_batch_axes():
    graph = symad.trace(lambda w, v: np.sum(w * v), [(3,), (3,)])
    for axes, message in [
        ((5, 0), "w has 2 axes with the batch axis; axis 5 is not one"),
        ((None, None), "without an input that carries the batch"),
        (("a", 0), "not an int, or a list of ints and None"),
        ("a", "not an int"),
    ]:
        with pytest.raises(ShapeError, match=message):
            symad.vmap(graph, in_axes=axes)


def test_graphs_are_copied_as_themselves():
    """They never change."""
    import copy

    graph = symad.gradient(f)
    assert copy.deepcopy({"graph": graph})["graph"] is graph
    assert copy.copy(graph) is graph
