"""Matrix expressions: values, gradients, Jacobians and Hessians against elementwise derivatives.

Among them every expression on which SymPy's own matrix derivative is wrong, fails or stays
unevaluated, each with sizes that are numbers and with sizes that are symbols.
"""

import numpy as np
import pytest
import sympy
from sympy import (
    Array,
    Determinant,
    HadamardPower,
    HadamardProduct,
    Identity,
    ImmutableDenseMatrix,
    Lambda,
    MatrixSymbol,
    OneMatrix,
    Symbol,
    Trace,
    cos,
    exp,
    log,
    sin,
)
from sympy.matrices.expressions import (
    CompanionMatrix,
    DiagMatrix,
    DiagonalMatrix,
    DiagonalOf,
    special,
)
from sympy.matrices.expressions.determinant import Permanent
from sympy.matrices.expressions.factorizations import QofQR

import symad
from symad.errors import EvaluationError, ShapeError, TraceError
from symad.numeric import lower
from symad.ops.basic.contraction import Einsum
from symad.ops.linalg.solve_det import LogDeterminant, Solve
from tests.symad.tracing.matrix_cases import (
    MATRICES,
    PARTS,
    SCALARS,
    Q,
    Symbols,
    m,
    n,
    number,
    t,
    u,
    values_for,
)
from tests.symad.tracing.matrix_reference import evaluate, floats_of, hessian, jacobian, matrix_point


def symbols_of(expression):
    """The symbols that the definition needs values for: all but bound ones."""
    return [s for s in expression.free_symbols if isinstance(s, (MatrixSymbol, Symbol))]


def assert_close(got, expected):
    expected = np.asarray(expected, dtype=float)
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(
        np.asarray(got).reshape(expected.shape), expected, rtol=1e-11, atol=1e-12 * scale
    )


def concrete(case):
    """The case in 3×3 matrices, by whose explicit elements the reference goes."""
    return case(Symbols(3))


@pytest.mark.sample(18)
@pytest.mark.parametrize("size", [3, n], ids=["3", "n"])
@pytest.mark.parametrize("name", SCALARS)
def test_scalar_functions_of_matrices(name, size):
    expression, wrt = SCALARS[name](Symbols(size))
    explicit, by = concrete(SCALARS[name])
    graph = symad.gradient(expression, wrt)
    values = values_for(graph)
    there = matrix_point(symbols_of(explicit))
    assert_close(symad.trace(expression, inputs=graph.inputs)(*values), evaluate(explicit, there))
    expected = jacobian(explicit, by, there)
    assert_close(graph(*values), expected)
    assert_close(symad.gradient(expression, wrt, mode="forward")(*values), expected)


# To be compared twice: second derivatives by definition cost four evaluations an entry.
SECOND = [
    "tr X'X - 3", "exp tr X", "exp of a quadratic form", "norm", "log det", "det times trace",
    "det along a line", "a'(Ax∘x)", "log sum exp", "sum exp Ax", "x'Ax", "least squares",
    "a'tanh(Ax) in x", "dot",
]  # fmt: skip


@pytest.mark.parametrize(
    "mode",
    [
        "forward-over-reverse",
        "reverse-over-forward",
        "reverse-over-reverse",
        "forward-over-forward",
    ],
)
@pytest.mark.parametrize("name", SECOND)
def test_hessians(name, mode):
    expression, wrt = SCALARS[name](Symbols(n))
    explicit, by = SCALARS[name](Symbols(2))
    graph = symad.hessian(expression, wrt, mode=mode)
    values = values_for(graph, 2)
    there = matrix_point(symbols_of(explicit))
    assert_close(graph(*values), hessian(explicit, by, there))


@pytest.mark.sample(22)
@pytest.mark.parametrize("size", [3, n], ids=["3", "n"])
@pytest.mark.parametrize("name", MATRICES)
def test_matrix_functions(name, size):
    expression, wrt = MATRICES[name](Symbols(size))
    explicit, by = concrete(MATRICES[name])
    graph = symad.jacobian(expression, wrt, mode="forward")
    values = values_for(graph)
    there = matrix_point(symbols_of(explicit))
    assert_close(symad.trace(expression, inputs=graph.inputs)(*values), evaluate(explicit, there))
    expected = jacobian(explicit, by, there)
    assert_close(graph(*values), expected)
    assert_close(symad.jacobian(expression, wrt, mode="reverse")(*values), expected)


# ---- what SymPy's derivative gets wrong, in other shapes ----------------------------------------


@pytest.mark.parametrize("power", [3, 1, 0, -2])
def test_symbolic_powers(power):
    """d tr(X^k)/dX = k (X^(k-1))', k known only when the graph is called."""
    k = Symbol("k", integer=True)
    X = MatrixSymbol("X", n, n)
    graph = symad.gradient(Trace(X**k), X)
    assert graph.inputs == (X, k)
    value = floats_of(matrix_point([X])[X])
    expected = power * np.linalg.matrix_power(value, power - 1).T
    assert_close(graph(value, power), expected)
    assert_close(symad.trace(X**k, [X, k])(value, power), np.linalg.matrix_power(value, power))
    with pytest.raises(EvaluationError, match="k is an integer"):
        graph(value, 2.5)


@pytest.mark.parametrize("name", ["tr X^-2", "exp tr X", "det times trace", "an element of AX"])
def test_the_derivative_in_an_element_is_that_entry(name):
    """With X[1, 2] replaced by a symbol of its own, as SymPy differentiates scalars."""
    expression, X = SCALARS[name](Symbols(3))
    graph = symad.gradient(expression, X)
    values = values_for(graph)
    entry = Symbol("entry", real=True)
    explicit = X.as_explicit().as_mutable()
    explicit[1, 2] = entry
    there = matrix_point(graph.inputs)
    numbers = {explicit[i, j]: there[X][i, j] for i in range(3) for j in range(3)}
    others = {s: v for s, v in there.items() if s is not X}
    moved = expression.subs(X, sympy.ImmutableDenseMatrix(explicit)).subs(others).doit()
    derivative = sympy.diff(moved, entry).subs(numbers)
    assert graph(*values)[1, 2] == pytest.approx(float(derivative), rel=1e-12)


def test_elements_are_no_inputs():
    X = MatrixSymbol("X", 3, 3)
    with pytest.raises(TraceError, match=r"X\[1, 2\] is an element.*use X"):
        symad.gradient(Trace(X), X[1, 2])


def test_arrays_of_other_symbols_have_zero_derivatives():
    a, b, c, d = sympy.symbols("a b c d", real=True)
    jac = symad.jacobian(Array([a, b]), [c, d])
    assert np.array_equal(jac(*range(4)), np.zeros((2, 2)))
    X, Y = MatrixSymbol("X", n, n), MatrixSymbol("Y", n, m)
    gradient = symad.gradient(Trace(X), Y)
    assert np.array_equal(gradient(np.eye(2), np.ones((2, 3))), np.zeros((2, 3)))


# ---- parts of matrices --------------------------------------------------------------------------


@pytest.mark.parametrize("name", PARTS)
def test_parts_have_the_elements_sympy_says(name):
    graph = symad.trace(PARTS[name])
    assert_close(graph(*values_for(graph)), evaluate(PARTS[name], matrix_point(graph.inputs)))


def test_companion_matrices_hold_the_coefficients():
    expression = CompanionMatrix(sympy.Poly([1, 2, 3 * u], t))
    graph = symad.trace(expression)
    assert graph.inputs == (u,)
    assert np.array_equal(graph(5), [[0, -15], [1, -2]])


def test_rectangular_diagonals():
    value = np.arange(12.0).reshape(4, 3)
    assert np.array_equal(symad.trace(DiagonalOf(Q))(value), [[0], [4], [8]])
    assert np.array_equal(symad.trace(DiagonalMatrix(Q))(value), value * np.eye(4, 3))
    with pytest.raises(ShapeError, match="which side"):
        symad.trace(DiagonalOf(MatrixSymbol("R", n, m)))


def test_steps_count_as_in_numpy():
    """SymPy says that X[::2, :] of three rows has one row, and gives two elements."""
    value = np.arange(12.0).reshape(4, 3)
    for part in (np.s_[::2, :], np.s_[1::2, ::2], np.s_[::3, 1:]):
        assert np.array_equal(symad.trace(Q[part])(value), value[part])


def test_indices_that_are_dimensions_or_inputs():
    x, i = MatrixSymbol("x", n, 1), Symbol("i", integer=True)
    value = np.array([[3.0], [5.0], [7.0]])
    assert symad.trace(x[n - 1, 0])(value) == 7
    assert symad.trace(x[i, 0], [x, i])(value, 1) == 5
    assert np.array_equal(symad.gradient(x[i, 0] ** 2, x)(1, value), [[0], [10], [0]])
    X = MatrixSymbol("X", n, n)
    assert symad.trace(X[0, n - 1])(np.arange(9.0).reshape(3, 3)) == 2


def test_explicit_matrices_of_numbers_are_one_constant():
    graph = symad.trace(ImmutableDenseMatrix([[1, 2], [3, 4]]) * MatrixSymbol("v", 2, 1))
    assert len(graph.nodes) == 3
    mixed = symad.trace(ImmutableDenseMatrix([[1, sympy.Rational(1, 3)]]) * MatrixSymbol("v", 2, 1))
    third = [sympy.Rational(1, 3)]
    assert mixed(np.array([[sympy.S(0)], third], dtype=object))[0, 0] == sympy.Rational(1, 9)


def test_what_changes_nothing():
    A = MatrixSymbol("A", n, n)
    (node,) = symad.trace(A).outputs
    for expression in (
        sympy.MatMul(special.GenericIdentity(), A),
        sympy.MatAdd(special.GenericZeroMatrix(), A),
        sympy.MatMul(Identity(n), A, Identity(n)),
        sympy.Transpose(sympy.Transpose(A)),
        sympy.conjugate(A),
        A[:, :],
    ):
        assert symad.trace(expression).outputs[0] is node


def test_sparse_matrices_are_matrices():
    sparse = sympy.SparseMatrix(2, 2, {(0, 1): t})
    assert np.array_equal(symad.trace(sparse)(3), [[0, 3], [0, 0]])
    product = sympy.ImmutableSparseMatrix(sparse) * MatrixSymbol("v", 2, 1)
    assert np.array_equal(symad.trace(product, [t, MatrixSymbol("v", 2, 1)])(3, np.ones((2, 1))), [[3], [0]])


def test_large_integers_do_not_overflow():
    big = ImmutableDenseMatrix([[10**12, 1], [0, 10**12]])
    value = symad.trace(sympy.MatMul(big, big, big))()
    np.testing.assert_allclose(value, [[1e36, 3e24], [0, 1e36]], rtol=1e-15)


class Softmax(sympy.MatrixExpr):
    """Columns of positive numbers that sum to one: a user's class that says only its elements."""

    def __new__(cls, matrix):
        return super().__new__(cls, matrix)

    shape = property(lambda self: self.args[0].shape)

    def _entry(self, i, j, **kwargs):
        k = sympy.Dummy("k", integer=True)
        column = sympy.Sum(exp(self.args[0][k, j]), (k, 0, self.shape[0] - 1))
        return exp(self.args[0][i, j]) / column


class Nameless(sympy.MatrixExpr):
    shape = (n, n)


@pytest.mark.parametrize("rows", [4, n])
def test_classes_known_by_their_elements(rows):
    X, w = MatrixSymbol("X", rows, m), MatrixSymbol("w", m, 1)
    value, weights = np.arange(12.0).reshape(4, 3) / 5, np.array([[1.0], [-2.0], [0.5]])
    p = np.exp(value) / np.exp(value).sum(axis=0)
    np.testing.assert_allclose(symad.trace(Softmax(X))(value), p, rtol=1e-14)
    graph = symad.gradient(OneMatrix(1, rows) * HadamardPower(Softmax(X), 2) * w, [X, w])
    expected = 2 * weights.T * p * (p - (p * p).sum(axis=0))
    np.testing.assert_allclose(graph(value, weights)[0], expected, rtol=1e-13)
    with pytest.raises(TraceError, match=r"Nameless is not known.*define Nameless\._entry"):
        symad.trace(Nameless() * MatrixSymbol("x", n, 1))


@pytest.mark.skipif(not hasattr(sympy.matrices.expressions.special, "MatrixUnit"), reason="SymPy 1.15 has it")
def test_matrix_units():
    unit = special.MatrixUnit(n, m, 1, m - 1)
    graph = symad.trace(unit + MatrixSymbol("X", n, m))
    assert np.array_equal(graph(np.zeros((2, 3))), [[0, 0, 0], [0, 0, 1]])
    assert symad.trace(symad.to_sympy(graph)) is graph


# ---- what is computed ---------------------------------------------------------------------------


def ops(expression):
    return [type(node.op) for node in symad.trace(expression).nodes]


def test_products_are_associated_with_vectors_first():
    A, B, w = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n), MatrixSymbol("w", n, 1)
    for expression in (
        A * B * w,
        w.T * A * B,
        A**2 * w,
        A**5 * w,
        (A * B).T * w,
        A * B * A * w * w.T * B,
    ):
        sizes = [node.shape for node in symad.trace(expression).nodes if isinstance(node.op, Einsum)]
        assert sum(shape == (n, n) for shape in sizes) == (expression.shape == (n, n))
    assert ops(A**5 * w).count(Einsum) == 5
    assert ops(A**8).count(Einsum) == 3
    assert ops(A**8 * B).count(Einsum) == 4


def test_known_sizes_choose_the_order():
    thin, wide = MatrixSymbol("P", 100, 2), MatrixSymbol("Q", 2, 100)
    full = MatrixSymbol("F", 100, 100)
    shapes = [n.shape for n in symad.trace(thin * wide * full * thin).nodes if isinstance(n.op, Einsum)]
    assert shapes == [(100, 2), (2, 2), (100, 2)]


def test_inverses_in_products_are_solves():
    A, B, b = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n), MatrixSymbol("b", n, 1)
    for expression, solves in (
        (A.I * b, 1),
        (b.T * A.I, 1),
        (A.I * B.I * b, 2),
        (A**-3 * b, 3),
        (b.T * A.I * b, 1),
    ):
        nodes = symad.trace(expression).nodes
        assert [node.shape[-1] for node in nodes if isinstance(node.op, Solve)] == [1] * solves


def test_traces_of_products_form_no_product():
    A, B = MatrixSymbol("A", n, m), MatrixSymbol("B", m, n)
    graph = symad.trace(Trace(A * B))
    assert [node.shape for node in graph.nodes] == [(n, m), (m, n), ()]


def test_logarithms_of_determinants_do_not_overflow():
    X = MatrixSymbol("X", n, n)
    graph = symad.trace(log(Determinant(X)))
    assert LogDeterminant in ops(log(Determinant(X)))
    assert graph(np.eye(400) * 1e3) == pytest.approx(400 * np.log(1e3))
    assert np.isnan(graph(np.diag([1.0, -1.0])))


def test_sums_with_ones_and_diagonal_products_are_no_products():
    X, x = MatrixSymbol("X", n, m), MatrixSymbol("x", n, 1)
    row, column = OneMatrix(1, n), OneMatrix(m, 1)
    for expression in (row * X, X * column, row * X * column, x * OneMatrix(1, m)):
        assert all(len(node.args) < 2 for node in symad.trace(expression).nodes)
    scaled = symad.trace(DiagMatrix(x) * X)
    assert all(node.shape != (n, n) for node in scaled.nodes)


def test_long_products():
    factors = [MatrixSymbol(f"A{k}", 3, 3) for k in range(60)]
    graph = symad.trace(sympy.MatMul(*factors, MatrixSymbol("v", 3, 1)))
    rng = np.random.default_rng(0)
    point = {str(s): rng.uniform(-1, 1, tuple(map(int, s.shape))) for s in graph.inputs}
    expected = np.linalg.multi_dot([point[str(s)] for s in (*factors, "v")])
    np.testing.assert_allclose(graph(*[point[str(s)] for s in graph.inputs]), expected, rtol=1e-10)
    A, w = MatrixSymbol("A", 3, 3), MatrixSymbol("w", 3, 1)
    value, vector = np.diag([0.5, 1.0, 1.01]), np.ones((3, 1))
    power = np.linalg.matrix_power(value, 1000) @ vector
    np.testing.assert_allclose(symad.trace(A**1000 * w)(value, vector), power, rtol=1e-10)


# ---- bad input ----------------------------------------------------------------------------------


class Bad:
    X, A = MatrixSymbol("X", n, n), MatrixSymbol("A", n, n)
    R = MatrixSymbol("R", n, m)
    v = MatrixSymbol("v", n, 1)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (Bad.v * Bad.A, r"v and A do not fit: \(n, 1\)·\(n, n\)"),
        (Bad.A * Bad.R * Bad.v, r"R and v do not fit: \(n, m\)·\(n, 1\)"),
        ((Bad.v.T * Bad.v) * Bad.A, r"do not fit: .*1×1 product is not a number.*\[0, 0\]"),
        (Bad.A + Bad.R, r"A \(n, n\), R \(n, m\)"),
        (HadamardProduct(Bad.A, Bad.R), r"A \(n, n\), R \(n, m\)"),
        (Bad.R.inv(), r"square matrix.*R \(n, m\)"),
        (Bad.R**3, r"square matrix.*R \(n, m\)"),
        (Bad.R.inv() * Bad.v, r"square matrix.*R \(n, m\)"),
        (Trace(Bad.R), r"square matrix.*R \(n, m\)"),
        (Determinant(Bad.R), r"square matrix.*R \(n, m\)"),
        (DiagMatrix(Bad.R), r"vector.*\(n, m\)"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_symbolic_shapes_are_checked(expression, message):
    with pytest.raises(ShapeError, match=message):
        symad.trace(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (exp(Bad.A), r"exp\(A\) applies exp to numbers, but A has shape \(n, n\).*applyfunc"),
        (sin(Bad.v.T * Bad.v), r"1×1"),
        (Bad.X**0.5, "exponent 0.50*; only integer"),
        (Bad.X ** sympy.Rational(1, 2), "exponent 1/2; only integer"),
        (Permanent(Bad.X), "permanents are not supported"),
        (QofQR(Bad.X), "QofQR is not supported"),
        (special.GenericIdentity(), "has no size"),
        (Bad.v.applyfunc(Lambda(u, sympy.Integral(cos(u * t), t))), "integral"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_has_no_meaning_is_refused(expression, message):
    with pytest.raises(TraceError, match=message):
        symad.trace(expression)


def test_calls_are_checked_against_the_dimensions():
    A, x = MatrixSymbol("A", n, m), MatrixSymbol("x", m, 1)
    graph = symad.gradient(Trace(A * x * x.T * A.T), [A, x])
    gradient = graph(np.ones((2, 3)), np.ones((3, 1)))
    assert [part.shape for part in gradient] == [(2, 3), (3, 1)]
    with pytest.raises(ShapeError, match=r"m = 4.*m = 3"):
        graph(np.ones((2, 3)), np.ones((4, 1)))
    with pytest.raises(ShapeError, match="A has shape"):
        graph(np.ones(3), np.ones((3, 1)))
    with pytest.raises(EvaluationError, match="missing: x"):
        graph(np.ones((2, 3)))


def test_dimensions_that_are_expressions():
    A, x = MatrixSymbol("A", n + 1, 2 * n), MatrixSymbol("x", 2 * n, 1)
    graph = symad.trace(symad.gradient(Trace((A * x).T * A * x), [x, A]))
    value, vector = np.arange(12.0).reshape(3, 4), np.ones((4, 1))
    np.testing.assert_allclose(graph(value, vector)[0], 2 * value.T @ value @ vector)
    with pytest.raises(ShapeError, match=r"axis 1 of A must have size 2\*n = 6 \(n = 3\), not 4"):
        graph(np.ones((4, 4)), np.ones((4, 1)))


@pytest.mark.parametrize("rows", [3, n])
def test_real_powers_of_a_product_that_is_one_number(rows):
    """A 1×1 matrix counts as a number: |v|, and |v|⁻³ as in a field of gravity."""
    v, p = MatrixSymbol("v", rows, 1), Symbol("p", real=True)
    value = np.array([[1.0], [2.0], [2.0]])
    for exponent in (sympy.Rational(1, 2), sympy.Rational(-3, 2), 0.5, sympy.pi):
        slope = symad.gradient((v.T * v) ** exponent, v)
        np.testing.assert_allclose(slope(value), 2 * float(exponent) * 9 ** (float(exponent) - 1) * value)
        np.testing.assert_allclose(lower(slope)(value), slope(value))
    np.testing.assert_allclose(symad.trace((v.T * v) ** p)(1.5, value), [[27]])
    assert symad.check((v.T * v) ** sympy.Rational(1, 2)).status in ("proved", "tested")
    with pytest.raises(TraceError, match="only integer exponents"):
        symad.trace(MatrixSymbol("S", rows, rows) ** sympy.Rational(1, 2))


def test_a_dimension_used_as_a_value():
    x = MatrixSymbol("x", n, 1)
    mean = symad.trace(number(OneMatrix(1, n) * x) / n)
    assert mean.inputs == (x,)
    assert mean(np.array([[1.0], [2.0], [6.0]])) == 3


def test_errors_do_not_print_huge_expressions():
    f = MatrixSymbol("A", n, n)
    for _ in range(60):
        f = HadamardProduct(f, f)
    with pytest.raises(ShapeError, match="a HadamardProduct"):
        symad.trace(sympy.MatAdd(f, MatrixSymbol("R", n, m)))
