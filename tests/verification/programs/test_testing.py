"""`symad.testing` in users' tests: their own derivatives and their own ops, in plain pytest."""

from dataclasses import dataclass

import numpy as np
import pytest
from sympy import cos, exp, sin, symbols

import symad
from symad.core.graph import ZERO, Graph, Node, Op, shape
from symad.core.questions import batch, definition, evaluate, examples, flops, jvp, sympy_form, transpose
from symad.op_examples import EXAMPLES
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.contraction import permute
from symad.ops.basic.shaping import slice_axis
from symad.ops.basic.sources import input_node
from symad.testing import assert_derivative, assert_dot_product, assert_dual, check_rule

x, y = symbols("x y", real=True)


# ---- derivatives --------------------------------------------------------------------------------


def test_right_derivatives_pass():
    assert assert_derivative(sin(x) * y, x, gradient=y * cos(x)).status == "proved"
    assert_derivative(sin(x) * y, x, gradient=y * cos(x), level="proved")
    assert_derivative(sin(x) * y, [x, y], gradient=lambda x, y: (y * np.cos(x), np.sin(x)))
    assert_derivative(x * y, hessian=[[0, 1], [1, 0]])
    assert_derivative([x * y, x], [x, y], jacobian=[[y, x], [1, 0]])


def test_wrong_derivatives_fail_with_the_certificate():
    with pytest.raises(AssertionError, match="wrong sign") as caught:
        assert_derivative(cos(x) * y, x, gradient=y * sin(x))
    assert "at       " in str(caught.value)
    with pytest.raises(AssertionError, match="MEASURED"):
        assert_derivative(sin(x), x, gradient=lambda x: np.cos(x), level="proved")


def test_a_level_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="level"):
        assert_derivative(sin(x), x, gradient=cos(x), level="certain")


# ---- ops of outsiders ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Swish(Op):
    """y = x exp(x), elementwise: an op that is not linear."""


@shape(Swish)
def swish_shape(op, args):
    return args[0].shape


def swish(a):
    return Node.of(Swish(), (a,))


@jvp.dispatch
def swish_jvp(op: Swish, y: Node, tangents):
    (x_dot,) = tangents
    from symad.ops.elementwise.apply import apply

    return mul(add(apply(exp, y.args[0]), y), x_dot) if isinstance(x_dot, Node) else ZERO


@evaluate.dispatch
def swish_evaluate(op: Swish, values):
    from symad.numbers.number_domains import apply

    (a,) = values
    return a * apply(exp, (a,))


@definition.dispatch
def swish_definition(op: Swish, y: Node):
    from symad.ops.elementwise.apply import apply

    (a,) = y.args
    return mul(a, apply(exp, a))


@flops.dispatch
def swish_flops(op: Swish, y: Node):
    return 2


@sympy_form.dispatch
def swish_sympy(op: Swish, y: Node, forms):
    return forms[0] * exp(forms[0])


def swish_examples():
    return [swish(input_node(symbols("u", real=True), ()))]


@pytest.fixture(autouse=True)
def registered():
    """The examples are there in these tests only: other tests go through all ops of the library."""
    examples(Swish)(swish_examples)
    yield
    EXAMPLES.pop(Swish)


@dataclass(frozen=True, eq=False)
class Rotate(Op):
    """The elements along the last axis moved by one place; the transpose is off by ``wrong`` places."""

    wrong: int = 0
    linear = True


@shape(Rotate)
def rotate_shape(op, args):
    return args[0].shape


def rolled(a, by):
    n, last = a.shape[-1], len(a.shape) - 1
    k = by % n
    return concatenate([slice_axis(a, last, n - k, k), slice_axis(a, last, 0, n - k)], last) if k else a


@batch.dispatch
def rotate_batch(op: Rotate, args, batched, count):
    return Node.of(op, args)


@jvp.dispatch
def rotate_jvp(op: Rotate, y: Node, tangents):
    (x_dot,) = tangents
    return Node.of(op, (x_dot,)) if isinstance(x_dot, Node) else ZERO


@transpose.dispatch
def rotate_transpose(op: Rotate, y: Node, y_bar: Node, linear):
    """Right is the rotation back; wrong ones rotate further."""
    return (rolled(y_bar, -1 + op.wrong),)


@evaluate.dispatch
def rotate_evaluate(op: Rotate, values):
    return np.roll(values[0], 1, axis=-1)


@definition.dispatch
def rotate_definition(op: Rotate, y: Node):
    return rolled(y.args[0], 1)


VECTOR = input_node(symad.trace(lambda v: v, [(3,)]).inputs[0], (3,))


def test_a_right_rule_of_an_outsiders_op_passes():
    assert check_rule(Swish).status in ("proved", "tested")
    assert check_rule(Node.of(Rotate(), (VECTOR,))).status in ("proved", "tested")


def test_a_wrong_transpose_of_an_outsiders_op_is_found():
    with pytest.raises(AssertionError, match=r"⟨w, J v⟩|jvp and transpose"):
        check_rule(Node.of(Rotate(1), (VECTOR,)))


def test_a_missing_rule_is_named():
    @dataclass(frozen=True, eq=False)
    class Mystery(Op):
        """No rule but its shape."""

    @shape(Mystery)
    def mystery_shape(op, args):
        return args[0].shape

    with pytest.raises(AssertionError, match="Mystery does not answer jvp"):
        check_rule(Node.of(Mystery(), (VECTOR,)))


def test_a_wrong_tangent_of_an_outsiders_op_is_found():
    @dataclass(frozen=True, eq=False)
    class Cube(Op):
        """y = x³."""

    @shape(Cube)
    def cube_shape(op, args):
        return args[0].shape

    @jvp.dispatch
    def cube_jvp(op: Cube, y: Node, tangents):
        (a,) = y.args
        return mul(a, a, tangents[0])  # a factor 3 is missing

    @definition.dispatch
    def cube_definition(op: Cube, y: Node):
        (a,) = y.args
        return mul(a, a, a)

    @evaluate.dispatch
    def cube_evaluate(op: Cube, values):
        return values[0] ** 3

    with pytest.raises(AssertionError, match=r"Dual numbers|missing factor 3"):
        check_rule(Node.of(Cube(), (input_node(x, ()),)))


def test_the_dot_product_identity_is_exact():
    A = symad.trace(lambda A, b: A @ b, [(2, 3), (3,)])
    assert_dot_product(A)
    assert_dual(A)
    wrong = Graph((VECTOR,), (Node.of(Rotate(2), (VECTOR,)),))
    with pytest.raises(AssertionError, match="⟨Jᵀ w, v⟩"):
        assert_dot_product(wrong)


def test_an_op_that_is_its_own_transpose():
    symmetric = symad.trace(lambda A: A + A.T, [(2, 2)])
    assert_dot_product(symmetric)
    assert permute(permute(symmetric.output_nodes[0], (1, 0)), (1, 0)) is symmetric.output_nodes[0]
