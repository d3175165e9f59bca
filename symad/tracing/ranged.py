"""Integrals, and sums and products whose bounds are arguments, as functions of their bounds and parameters.

Σ_{i=a}^{b} f(i, p), Π_{i=a}^{b} f(i, p) and ∫_a^b f(x, p) dx are each a SymPy function of (a, b, p...),
constructed from the graph of f. Their derivatives are such functions again:

    ∂Σ/∂p = Σ ∂f/∂p        ∂Π/∂p = Σ_i ∂f/∂p(i) Π_{k<i} f(k) Π_{k>i} f(k)
    ∂∫/∂p = ∫ ∂f/∂p dx     ∂∫/∂b = f(b)     ∂∫/∂a = −f(a)

Bounds of sums and products are integers, by which the derivative is 0. For b < a they follow SymPy's
convention: Σ_{i=a}^{b} = −Σ_{i=b+1}^{a−1} (Karr, "Summation in finite terms", 1981, definition 1.4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

import mpmath
import sympy

from symad.core.arrays import Number
from symad.core.graph import ZERO, Graph, Node, op_of, rebuild, topological
from symad.core.questions import Nodes, Tangent
from symad.errors import OutsideError, TraceError
from symad.numbers.values import outputs_at
from symad.ops.basic.arithmetic import add, mul, neg, sub
from symad.ops.basic.sources import Constant, constant, input_node
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import power
from symad.special_ranges import integrated, multiplied, summed
from symad.tracing.into_sympy.nodes import nodes_to_sympy, to_sympy
from symad.transforms.tangents import push

BY_FLOATS: dict[str, Callable[..., Number]] = {"sum": summed, "product": multiplied, "integral": integrated}
MAX_EXACT_TERMS = 10_000
"""The number of terms up to which exact sums and products are expanded."""

EXPRESSIONS: dict[str, type[sympy.Expr]] = {
    "sum": sympy.Sum,
    "product": sympy.Product,
    "integral": sympy.Integral,
}


class Ranged(sympy.Function):
    """The functions of this file: (low, high, p...) -> the sum, product or integral of the body."""

    kind: ClassVar[str]
    body: ClassVar[Graph]
    """The body: from the variable and the parameters to a scalar."""

    @classmethod
    def eval(cls, *args: sympy.Expr) -> sympy.Expr | None:
        """Exact short sums and products of rational numbers; None for other numbers; else `unranged`."""
        rational = cls.kind != "integral" and all(a.is_Rational for a in args)
        if rational and abs(args[1] - args[0]) <= MAX_EXACT_TERMS:
            exact = [Fraction(int(a.p), int(a.q)) for a in args]
            total = _added(cls.kind, partial(_value, cls.body), *exact)
            if not isinstance(total, Fraction):
                return None
            return sympy.Rational(total.numerator, total.denominator)
        return None if all(a.is_Number for a in args) else cls.unranged(*args)

    @classmethod
    def unranged(cls, *args: sympy.Expr) -> sympy.Expr:
        """SymPy's own sum, product or integral."""
        (symbol, *parameters) = cls.body.inputs
        variable = sympy.Dummy(symbol.name, **symbol.assumptions0)
        values = dict(zip(parameters, args[2:], strict=True))
        inside = to_sympy(cls.body).xreplace({symbol: variable, **values})
        return EXPRESSIONS[cls.kind](inside, (variable, *args[:2]))


@lru_cache(maxsize=64)
def _slot(k: int, whole: bool = False) -> Node:
    """The variable of bodies, or their k-th parameter: the same in all, so that equal bodies are one node."""
    name = f"p{k}" if k else ("i" if whole else "s")
    return input_node(sympy.Dummy(name, integer=True) if whole else sympy.Dummy(name, real=True))


@lru_cache(maxsize=1024)
def _head(kind: str, body: Node, parameters: int) -> type[Ranged]:
    """The function of a body in slots."""
    slots = (_slot(0, kind != "integral"), *(_slot(k + 1) for k in range(parameters)))
    graph = Graph(slots, (body,))
    own = {"kind": kind, "body": graph, "nargs": parameters + 2, "slope": staticmethod(_slope)}
    return type(kind, (Ranged,), {**own, "_imp_": staticmethod(partial(_computed, kind, graph))})


def function_of_body(kind: str, body: Graph) -> type[Ranged]:
    """The function of a body whose first input is the variable, and whose others are the parameters.

    Raises:
        TraceError: the body is not a scalar function of numbers.
    """
    inputs, outputs = body.input_nodes, body.output_nodes
    if kind not in BY_FLOATS or not inputs or len(outputs) != 1 or any(n.shape for n in (*inputs, *outputs)):
        raise TraceError(f"a {kind} is a sum, product or integral of one function of numbers")
    slots = (_slot(0, kind != "integral"), *(_slot(k + 1) for k in range(len(inputs) - 1)))
    (inside,) = rebuild(outputs, dict(zip(inputs, slots, strict=True)))
    return _head(kind, inside, len(inputs) - 1)


def ranged(kind: str, body: Node, variable: Node, low: Node, high: Node) -> Node:
    """The node of a sum, product or integral of ``body`` over ``variable``.

    Nodes that do not depend on the variable are computed once, and become parameters.

    Raises:
        TraceError: the body has arrays indexed by the variable.
    """
    moving = {variable}
    parameters: dict[Node, None] = {}
    for node in topological([body]):
        if moving.isdisjoint(node.args):
            continue
        moving.add(node)
        still = [a for a in node.args if a not in moving and not isinstance(a.op, Constant)]
        parameters |= dict.fromkeys(still)
        if wide := next((a.shape for a in (node, *still) if a.shape), None):
            raise TraceError(f"a {kind} is over functions of numbers, but has arrays of shape {wide} inside")
    if body not in moving:
        if body.shape:
            raise TraceError(f"the {kind} is one of arrays; take that of each element")
        times = sub(high, low) if kind == "integral" else add(high, neg(low), constant(1))
        return power(body, times) if kind == "product" else mul(times, body)
    slots = {p: _slot(k + 1) for k, p in enumerate(parameters)}
    (inside,) = rebuild((body,), {variable: _slot(0, kind != "integral"), **slots})
    return apply(_head(kind, inside, len(slots)), low, high, *parameters)


def check_decidable(graph: Graph) -> None:
    """Refuse to certify functions that are known by their values only.

    Raises:
        OutsideError: the graph has an integral, or a sum or product with arguments as bounds.
    """
    for node in graph.nodes:
        for field in fields(node.op):
            held = getattr(node.op, field.name)
            if isinstance(held, Graph):
                check_decidable(held)
            elif isinstance(held, type) and issubclass(held, Ranged):
                (shown,) = nodes_to_sympy([node])
                raise OutsideError(f"{shown} is known by its numbers alone; evaluate it first with .doit()")


# ---- derivatives --------------------------------------------------------------------------------


def _slope(y: Node, args: Nodes, i: int) -> Tangent:
    """∂/∂a, ∂/∂b, or ∂/∂p of the parameter at position i."""
    head = op_of(y, Apply).head
    (body,), (variable, *slots) = head.body.output_nodes, head.body.input_nodes
    if i < 2:
        if head.kind != "integral":
            return ZERO
        (at_bound,) = rebuild((body,), dict(zip((variable, *slots), (args[i], *args[2:]), strict=True)))
        return at_bound if i else neg(at_bound)
    (changed,) = push([body], {slots[i - 2]: constant(1)})
    if not isinstance(changed, Node):
        return ZERO
    if head.kind != "product":
        return apply(_head(head.kind, changed, len(slots)), *args)
    low, high = _slot(len(slots) + 1), _slot(len(slots) + 2)
    before = apply(head, low, sub(variable, constant(1)), *slots)
    after = apply(head, add(variable, constant(1)), high, *slots)
    return apply(_head("sum", mul(changed, before, after), len(slots) + 2), *args, *args[:2])


# ---- values -------------------------------------------------------------------------------------


def _value(body: Graph, *point: Number) -> Any:
    return outputs_at(body, *point)[0]


def _computed(kind: str, body: Graph, *values: Number) -> Number:
    """The value on floats and arrays, or on mpmath's numbers."""
    term = partial(_value, body)
    if not any(isinstance(v, mpmath.mpf) for v in values):
        return BY_FLOATS[kind](term, *values)
    low, high, *parameters = values
    if kind != "integral":
        return _added(kind, term, *values)
    return mpmath.quad(lambda x: term(x, *parameters), [low, high])


def _added(kind: str, term: Callable[..., Any], low: Any, high: Any, *parameters: Number) -> Number:
    """Σ or Π of exact numbers, term by term."""
    if low != int(low) or high != int(high):
        raise ValueError(f"the bounds {low} and {high} of a {kind} are not whole numbers")
    backwards = high < low - 1
    first, last = (high + 1, low - 1) if backwards else (low, high)
    one = type(low)(1)
    terms = [term(first + k * one, *parameters) for k in range(int(last - first) + 1)]
    if kind == "sum":
        total = sum(terms, 0 * one)
        return -total if backwards else total
    total = one
    for factor in terms:
        total *= factor
    return one / total if backwards else total
