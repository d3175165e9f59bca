"""Scalar SymPy expressions to nodes: numbers, symbols, arithmetic, functions, conditions."""

from __future__ import annotations

from typing import Any

import sympy
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.integrals.transforms import IntegralTransform
from sympy.logic.boolalg import (
    ITE,
    And,
    BooleanAtom,
    BooleanFunction,
    Equivalent,
    Implies,
    Not,
    Or,
    Xor,
)

from symad.core.expressions import as_sympy
from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.errors import OutsideError, TraceError
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.sources import constant, constant_value, dimension, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.ops.elementwise.selection import compare, logic, select
from symad.ops.elementwise.undefined import undefined
from symad.sympy_functions.special_functions import hyp0f1, hyp1f1, hyp2f1
from symad.tracing.error_names import check_one_shape, check_scalars
from symad.tracing.input_symbols import depends_on, is_function_input
from symad.tracing.proxies.wrapped import condition as truth
from symad.tracing.proxies.wrapped import is_condition, number
from symad.tracing.walk import Tracer, lift, operands
from symad.transforms.tangents import dense, push


def trace_scalar(expression: sympy.Basic) -> Node:
    """The node of a scalar expression in scalar symbols."""
    return Tracer().trace(as_sympy(expression))


@operands.register(sympy.Atom)
def atom_operands(expression: sympy.Atom, tracer: Tracer) -> tuple[()]:
    return ()


@lift.register(sympy.Symbol)
def symbol_lift(expression: sympy.Symbol, args: Nodes, tracer: Tracer) -> Node:
    if expression in tracer.dims:
        return dimension(expression)
    return input_node(expression, tracer.shapes.get(expression, ()))


@lift.register(sympy.Number)
def number_lift(expression: sympy.Number, args: Nodes, tracer: Tracer) -> Node:
    if not expression.is_finite:
        raise OutsideError(f"{expression} in an expression has no derivative and no exact value; remove it")
    return constant(expression)


@lift.register(sympy.NumberSymbol)
def number_symbol_lift(expression: sympy.NumberSymbol, args: Nodes, tracer: Tracer) -> Node:
    return constant(expression)


@lift.register(sympy.core.numbers.ComplexInfinity)
def complex_infinity_lift(
    expression: sympy.core.numbers.ComplexInfinity, args: Nodes, tracer: Tracer
) -> Node:
    raise OutsideError("zoo (complex infinity) inside an expression has no derivative; remove it")


@lift.register(sympy.core.numbers.ImaginaryUnit)
def imaginary_lift(expression: sympy.core.numbers.ImaginaryUnit, args: Nodes, tracer: Tracer) -> Node:
    raise OutsideError("the expression contains the imaginary unit I; symad works over the real numbers")


@lift.register(BooleanAtom)
def truth_lift(expression: BooleanAtom, args: Nodes, tracer: Tracer) -> Node:
    return constant(bool(expression))


@lift.register(sympy.Add)
def add_lift(expression: sympy.Add, args: Nodes, tracer: Tracer) -> Node:
    """A sum of numbers; SymPy also writes sums of arrays this way."""
    if all(node.shape for node in args):
        check_one_shape(expression, expression.args, args)
    else:
        check_scalars(expression, args)
    return add(*args)


@lift.register(sympy.Mul)
def mul_lift(expression: sympy.Mul, args: Nodes, tracer: Tracer) -> Node:
    """A product of numbers, one of which may be an array: 2*T."""
    if sum(1 for node in args if node.shape) > 1:
        check_scalars(expression, args)
    return mul(*args)


@lift.register(sympy.Pow)
def pow_lift(expression: sympy.Pow, args: Nodes, tracer: Tracer) -> Node:
    check_scalars(expression, args)
    return power(*args)


@lift.register(sympy.core.function.Application)
def application_lift(expression: sympy.core.function.Application, args: Nodes, tracer: Tracer) -> Node:
    """A scalar function, Max and Min among them; its derivative is looked up when it is needed."""
    check_scalars(expression, args)
    return apply(expression.func, *args)


@operands.register(AppliedUndef)
def undefined_operands(expression: AppliedUndef, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    """None for an undefined function such as q(t), which is an input."""
    return () if is_function_input(expression) else expression.args


def _unevaluated(expression: sympy.Basic) -> Node:
    name = type(expression).__name__
    raise OutsideError(
        f"the expression contains the unevaluated {name} {expression}; call .doit() or evaluate it first"
    )


@operands.register(sympy.Limit)
@operands.register(sympy.meijerg)
@operands.register(sympy.Order)
def unsupported_operands(expression: sympy.Basic, tracer: Tracer) -> tuple[()]:
    """None: subexpressions are not examined."""
    return ()


@operands.register(sympy.Derivative)
def derivative_operands(expression: sympy.Derivative, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    """None for an input such as the derivative of q(t); otherwise the function to differentiate."""
    return () if is_function_input(expression) else expression.args[:1]


@lift.register(sympy.Derivative)
def derivative_lift(expression: sympy.Derivative, args: Nodes, tracer: Tracer) -> Node:
    """An input if it is the derivative of an undefined function such as q(t); otherwise its value."""
    if is_function_input(expression):
        return input_node(expression)
    (made,) = args
    given = [f for f in expression.expr.atoms(AppliedUndef, sympy.Derivative) if is_function_input(f)]
    if any(depends_on(f, variable) for f in given for variable in expression.variables):
        _unevaluated(expression)
    for variable, times in expression.variable_count:
        symbol = isinstance(variable, sympy.Symbol) or is_function_input(variable)
        if not (symbol and times.is_Integer) or made.shape:
            _unevaluated(expression)
        for _ in range(int(times)):
            made = dense(push([made], {tracer.trace(variable): constant(1)})[0], made)
    return made


@lift.register(sympy.Limit)
def unevaluated_lift(expression: sympy.Basic, args: Nodes, tracer: Tracer) -> Node:
    return _unevaluated(expression)


HYPERGEOMETRIC: dict[tuple[int, int], Any] = {(0, 1): hyp0f1, (1, 1): hyp1f1, (2, 1): hyp2f1}


@operands.register(sympy.hyper)
def hypergeometric_operands(expression: sympy.hyper, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    """The parameters and the argument of 0F1, 1F1 and 2F1; none for others."""
    known = (len(expression.ap), len(expression.bq)) in HYPERGEOMETRIC
    return (*expression.ap, *expression.bq, expression.argument) if known else ()


@lift.register(sympy.hyper)
def hyper_lift(expression: sympy.hyper, args: Nodes, tracer: Tracer) -> Node:
    head = HYPERGEOMETRIC.get((len(expression.ap), len(expression.bq)))
    return hypergeometric_lift(expression, args, tracer) if head is None else apply(head, *args)


@lift.register(sympy.meijerg)
def hypergeometric_lift(expression: sympy.Basic, args: Nodes, tracer: Tracer) -> Node:
    raise OutsideError(
        f"{expression} is a general {type(expression).__name__} function, which has no implementation here; "
        "sympy.hyperexpand may write it by functions that have"
    )


@lift.register(sympy.Order)
def order_lift(expression: sympy.Order, args: Nodes, tracer: Tracer) -> Node:
    raise OutsideError(f"the expression contains the order term {expression}; call .removeO() first")


@operands.register(sympy.Subs)
def subs_operands(expression: sympy.Subs, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    done = expression.doit()
    if isinstance(done, sympy.Subs):
        _unevaluated(expression)
    return (done,)


@lift.register(sympy.Subs)
def subs_lift(expression: sympy.Subs, args: Nodes, tracer: Tracer) -> Node:
    return args[0]


@lift.register(sympy.DiracDelta)
def dirac_lift(expression: sympy.DiracDelta, args: Nodes, tracer: Tracer) -> Node:
    raise OutsideError(
        f"{expression} is not a function of real numbers; remove it (derivatives of steps are 0 here)"
    )


@operands.register(IntegralTransform)
def transform_operands(expression: IntegralTransform, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    raise OutsideError(
        f"{type(expression).__name__} is an integral over a variable of its own, and often complex; "
        "evaluate it first with SymPy's doit() where the result is real"
    )


# ---- real parts: every symbol is real ------------------------------------------------------------


@lift.register(sympy.re)
def re_lift(expression: sympy.re, args: Nodes, tracer: Tracer) -> Node:
    return args[0]


@lift.register(sympy.conjugate)
def conjugate_lift(expression: sympy.conjugate, args: Nodes, tracer: Tracer) -> Node:
    return args[0]


@lift.register(sympy.im)
def im_lift(expression: sympy.im, args: Nodes, tracer: Tracer) -> Node:
    return constant(0)


# ---- conditions ----------------------------------------------------------------------------------


@operands.register(sympy.Piecewise)
def piecewise_operands(expression: sympy.Piecewise, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    return tuple(part for pair in expression.args for part in pair.args)


@lift.register(sympy.Piecewise)
def piecewise_lift(expression: sympy.Piecewise, args: Nodes, tracer: Tracer) -> Node:
    """Nested selections; undefined if no branch holds, as in SymPy."""
    values, conditions = args[0::2], args[1::2]
    result = undefined(conditions, values)
    if all(constant_value(value) == 0 for value in values):
        return result
    for value, condition in zip(reversed(values), reversed(conditions), strict=True):
        result = select(condition, value, result)
    return result


@lift.register(ExprCondPair)
def pair_lift(expression: ExprCondPair, args: Nodes, tracer: Tracer) -> Node:
    raise AssertionError("the pairs of a Piecewise are traced with it")


@lift.register(Relational)
def relational_lift(expression: Relational, args: Nodes, tracer: Tracer) -> Node:
    check_scalars(expression, args)
    return compare(expression.rel_op, *args)


LOGIC = {And: "and", Or: "or", Xor: "xor", Not: "not"}


@lift.register(And)
@lift.register(Or)
@lift.register(Xor)
@lift.register(Not)
def logic_lift(expression: BooleanFunction, args: Nodes, tracer: Tracer) -> Node:
    return logic(LOGIC[expression.func], *args)


@lift.register(ITE)
def ite_lift(expression: ITE, args: Nodes, tracer: Tracer) -> Node:
    """For conditions a condition; for symbols a number, selected from them."""
    condition, yes, no = args
    if not (is_condition(yes) and is_condition(no)):
        return select(truth(condition), number(yes), number(no))
    return logic("or", logic("and", condition, yes), logic("and", logic("not", condition), no))


@lift.register(BooleanFunction)
def boolean_lift(expression: BooleanFunction, args: Nodes, tracer: Tracer) -> Node:
    """Implications and equivalences; SymPy writes Nand and Nor as negations."""
    if isinstance(expression, Implies):
        return logic("or", logic("not", args[0]), args[1])
    if isinstance(expression, Equivalent):
        pairs = [logic("not", logic("xor", args[0], other)) for other in args[1:]]
        return pairs[0] if len(pairs) == 1 else logic("and", *pairs)
    raise TraceError(f"the condition {expression} is not one of And, Or, Xor, Not, ITE, Implies, Equivalent")
