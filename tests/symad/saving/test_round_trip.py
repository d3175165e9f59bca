"""Graph to SymPy and back: the same graph, or, for graphs not made from SymPy, the same values."""

import warnings

import numpy as np
import pytest
import sympy
from sympy import (
    Abs,
    And,
    Eq,
    Heaviside,
    IndexedBase,
    Max,
    Min,
    Mod,
    Ne,
    Not,
    Or,
    Piecewise,
    Product,
    Rational,
    Sum,
    Xor,
    atan2,
    besselj,
    ceiling,
    cos,
    cosh,
    erf,
    exp,
    floor,
    gamma,
    log,
    pi,
    sign,
    sin,
    sqrt,
    tan,
    tanh,
)

import symad
from symad.core.graph import Graph, Node, topological
from symad.facts.functions import float_names
from symad.op_examples import EXAMPLES
from symad.ops.arrays.stacking import element
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.sources import Input, constant, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.tracing.into_sympy.nodes import nodes_to_sympy
from tests.symad.tracing.array_cases import CASES as ARRAY_CASES
from tests.symad.tracing.matrix_cases import MATRICES, PARTS, SCALARS, Symbols, n, values_for

x, y, z = sympy.symbols("x y z", real=True)
i, j = sympy.symbols("i j", integer=True)
a, b = IndexedBase("a", shape=(n,)), IndexedBase("b", shape=(n, n))

NUMBERS = {
    "polynomial": 3 * x**5 - x**2 * y / 7 + y - Rational(2, 3),
    "negative powers": 1 / x - 2 / (x * y**3) + x / y,
    "roots": sqrt(x**2 + y**2) / (x * y) ** Rational(2, 3),
    "symbolic powers": x**y + 2**x,
    "floats": 0.1 * x + 1e-300 * y,
    "constants": pi * x + sympy.E**2 * y + sympy.GoldenRatio,
    "elementary": sin(x) * cos(y) - tan(x * y) + exp(-(x**2)) * log(1 + y**2),
    "hyperbolic": tanh(x) / cosh(y) - sympy.asinh(x * y),
    "special": gamma(x) + erf(y) * besselj(0, x) + sympy.loggamma(y),
    "two arguments": atan2(y, x) + Mod(x, 3) + sympy.beta(x, y),
    "steps": floor(x) + ceiling(y) * sign(x) + Abs(x - y) + Heaviside(x),
    "extremes": Max(x, y, z, 2) * Min(x - y, 1),
    "a piecewise": Piecewise((x**2, x < 0), (sin(x), x <= 1), (y, True)),
    "no default": Piecewise((x**2, x < 0)),
    "nested conditions": Piecewise(
        (x, And(x > y, Or(y > z, Eq(z, 0)))), (y, Not(Eq(x, y))), (z, Ne(y, z)), (1, True)
    ),
    "exclusive or": Piecewise((x, Xor(x > 0, y > 0, z > 0)), (y, True)),
    "unevaluated product": sympy.Mul(2, sympy.Add(x, y, evaluate=False), evaluate=False),
    "unevaluated sum": sympy.Add(x, sympy.Mul(-1, sympy.Add(y, z), evaluate=False), evaluate=False),
    "quotient of sums": (x + y) / (x - y) ** 2 / 3,
    "sum over elements": Sum(a[i] ** 2, (i, 0, n - 1)),
    "quadratic form": Sum(a[i] * b[i, j] * a[j], (i, 0, n - 1), (j, 0, n - 1)),
    "function of a sum": log(Sum(exp(a[i]), (i, 0, n - 1))),
    "shifted indices": Sum((a[i + 1] - a[i]) ** 2, (i, 0, n - 2)),
    "product of elements": Product(a[i], (i, 0, n - 1)),
}
STRUCTURES = {
    "a matrix": sympy.Matrix([[x * y, 1], [0, sin(x)]]),
    "an array": sympy.Array([[[x, y], [z, x * y]], [[1, 2], [3, 4]]]),
    "numbers": sympy.Matrix([[1, 2], [3, 4]]),
    "float numbers": sympy.Array([1.5, 2]),
    "fractions": sympy.Matrix([[Rational(1, 3), 1]]),
    "a tuple": (x + y, sympy.Matrix([x]), (x * y,)),
    "a dict": {"f": x + y, "g": {"h": x**2}},
    "shared parts": [sin(x * y) ** k for k in range(1, 5)],
}
EXPRESSIONS = {
    **NUMBERS,
    **STRUCTURES,
    **{f"matrices: {k}": case(Symbols(n))[0] for k, case in {**SCALARS, **MATRICES}.items()},
    **{f"3×3: {k}": case(Symbols(3))[0] for k, case in {**SCALARS, **MATRICES}.items()},
    **{f"parts: {k}": part for k, part in PARTS.items()},
    **{f"arrays: {k}": expression for k, (expression, _) in ARRAY_CASES.items()},
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_come_back_as_the_same_graph(name):
    graph = symad.trace(EXPRESSIONS[name])
    assert symad.trace(symad.to_sympy(graph)) is graph


@pytest.mark.parametrize("name", [f"matrices: {k}" for k in SCALARS])
def test_gradients_come_back_as_the_same_nodes(name):
    """Derivative graphs are not made by SymPy, but every array in them traces to its own node."""
    expression = EXPRESSIONS[name]
    graph = symad.gradient(expression)
    back = symad.trace(symad.to_sympy(graph), inputs=graph.inputs)
    values = values_for(graph)
    for mine, theirs in zip(graph(*values), back(*values), strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NUMBERS)
def test_gradients_of_numbers_come_back_with_the_same_values(name):
    graph = symad.trace(NUMBERS[name])
    graph = symad.gradient(graph, graph.inputs)
    back = symad.trace(symad.to_sympy(graph), inputs=graph.inputs)
    rng = np.random.default_rng(1)
    values = [rng.uniform(0.5, 1.5, (3,) * len(getattr(s, "shape", ()))) for s in graph.inputs]
    values = [v if v.shape else float(v) for v in values]
    for mine, theirs in zip(graph(*values), back(*values), strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=1e-13)


EXAMPLE_NODES = [(cls, k) for cls, make in EXAMPLES.items() for k, _ in enumerate(make())]


@pytest.mark.parametrize(("cls", "k"), EXAMPLE_NODES, ids=lambda v: getattr(v, "__name__", str(v)))
def test_every_op_comes_back(cls, k):
    """As the same node; numbers may come back with their commutative arguments in another order."""
    node = EXAMPLES[cls]()[k]
    inputs = tuple(m for m in topological([node]) if isinstance(m.op, Input))
    dims = set().union(*(m.shape for m in inputs)) | Graph(inputs, (node,)).dims
    if any(isinstance(d, sympy.Symbol) for d in dims) or not inputs:
        pytest.skip("no inputs of known size")
    (form,) = nodes_to_sympy([node])
    back = symad.trace(form, inputs=[m.op.symbol for m in inputs]).outputs[0]
    if node.shape:
        assert back is node
    else:
        assert type(back.op) is type(node.op)
        assert set(back.args) == set(node.args)


@pytest.mark.thorough
def test_gradients_read_as_mathematics():
    s = Symbols(n)
    gradient = {name: symad.to_sympy(symad.gradient(*case(s))) for name, case in SCALARS.items()}
    assert isinstance(gradient["x'Ax"], sympy.MatAdd)
    assert set(gradient["x'Ax"].args) == {s.A * s.x, s.A.T * s.x}
    assert gradient["log det"] == sympy.Transpose(s.X.I)
    assert gradient["tr X + 1"] == sympy.Identity(n)
    assert "Form" not in " ".join(map(str, gradient.values()))


def test_graphs_of_functions_come_back():
    graph = symad.trace(lambda x, y: x * (x + y) - y / x + (-x) ** 2 - (x - y), [x, y])
    back = symad.trace(symad.to_sympy(graph), [x, y])
    assert back(1.5, -2.5) == pytest.approx(graph(1.5, -2.5), rel=1e-15)


@pytest.mark.thorough
def test_deep_chains_come_back():
    node = input_node(x)
    for _ in range(20_000):
        node = add(apply(sympy.sin, node), constant(1))
    (form,) = nodes_to_sympy([node])
    assert symad.trace(form).outputs[0] is node


@pytest.mark.thorough
def test_deep_chains_of_matrices_come_back():
    matrix = input_node(sympy.MatrixSymbol("A", n, n), (n, n))
    node = matrix
    for _ in range(1500):
        node = mul(matrix, apply(sympy.sin, node))
    (form,) = nodes_to_sympy([node])
    assert symad.trace(form).outputs[0] is node


@pytest.mark.thorough
def test_numbers_at_the_end_of_deep_chains_come_back():
    matrix = input_node(sympy.MatrixSymbol("A", n, n), (n, n))
    node = matrix
    for _ in range(3000):
        node = mul(matrix, apply(sympy.sin, node))
    number = apply(sympy.exp, element(node, 0, 0))
    (form,) = nodes_to_sympy([number])
    assert symad.trace(form).outputs[0] is number


@pytest.mark.parametrize("head", [h for h in float_names() if isinstance(h, sympy.FunctionClass)], ids=str)
def test_every_function_head_comes_back(head):
    counts = head.nargs if head.nargs != sympy.S.Naturals0 else (2,)
    if head is sympy.log:
        counts = (1,)
    for count in map(int, counts):
        node = apply(head, *map(input_node, (x, y, z, sympy.Symbol("w", real=True))[:count]))
        (back,) = symad.trace(nodes_to_sympy([node])[0]).outputs
        if head is sympy.Heaviside and count == 1:  # SymPy writes the value at 0 as well
            assert back.args[0] is node.args[0]
        elif head in (sympy.Max, sympy.Min):
            assert set(back.args) == set(node.args)
        else:
            assert back is node


def test_logarithms_to_a_base():
    graph = symad.trace(log(x, y, evaluate=False))
    assert graph(8.0, 2.0) == pytest.approx(3)
    assert symad.trace(symad.to_sympy(graph)) is graph


def test_forms_print_and_stand_in_expressions():
    A, B = (input_node(sympy.MatrixSymbol(name, 2, 2), (2, 2)) for name in "AB")
    (angle,) = nodes_to_sympy([apply(sympy.atan2, A, B)])
    assert str(angle) == "atan2(A, B)"
    assert sympy.latex(angle) == r"\operatorname{atan2}\left(A, B\right)"
    assert angle.shape == (2, 2)
    total = sympy.Trace(angle * sympy.MatrixSymbol("A", 2, 2)) + x
    value = np.array([[1.0, 2.0], [3.0, 4.0]])
    graph = symad.trace(total)
    point = {"A": value, "B": value.T, "x": 1.0}
    expected = np.trace(np.arctan2(value, value.T) @ value) + 1
    assert graph(*[point[str(s)] for s in graph.inputs]) == pytest.approx(expected)
    assert angle == nodes_to_sympy([apply(sympy.atan2, A, B)])[0]
    assert angle[0, 1].has(angle)


def test_forms_follow_substituted_dimensions():
    A, B = (input_node(sympy.MatrixSymbol(name, n, n), (n, n)) for name in "AB")
    (form,) = nodes_to_sympy([power(apply(sympy.atan2, A, B), constant(2))])
    assert symad.trace(form.subs(n, 3)).outputs[0].shape == (3, 3)


def test_an_undefined_function_goes_in_and_comes_back():
    f = sympy.Function("f")(x)
    assert symad.to_sympy(symad.trace(sympy.sin(f) * f.diff(x))) == sympy.sin(f) * f.diff(x)


def test_constants_are_kept_apart():
    nodes: list[Node] = [constant(v) for v in (1, 1.0, Rational(1, 3), sympy.Float("0.1", 40))]
    assert [symad.trace(form).outputs[0] for form in nodes_to_sympy(nodes)] == nodes


@pytest.mark.parametrize(
    ("f", "printed"),
    [
        (lambda x: np.sum(np.exp(x)), "Sum(exp(x[_i]), (_i, 0, n - 1))"),
        (lambda x: np.log(np.sum(np.exp(2 * x + 1))), "log(Sum(exp(2*x[_i] + 1), (_i, 0, n - 1)))"),
    ],
)
def test_sums_over_elements_are_written_as_sums(f, printed):
    graph = symad.trace(f, [(n,)])
    form = symad.to_sympy(graph)
    assert str(form) == printed
    assert symad.trace(form).output_nodes == graph.output_nodes


def test_truth_values_are_no_matrix_of_numbers():
    """SymPy warns of matrices that hold something else than expressions."""
    mask = np.array([[True, False], [False, True]])
    graph = symad.trace(lambda x: np.sum(np.where(mask, x, 0.0)), [(2, 2)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        form = symad.to_sympy(graph)
    assert symad.trace(form)(np.arange(4.0).reshape(2, 2)) == 3.0
