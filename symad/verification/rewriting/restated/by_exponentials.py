"""Inputs written by exponentials, so that inverse hyperbolic functions of them become logarithms.

x = (E − 1/E)/2 with E > 0 takes every real value once; then √(x² + 1) = (E + 1/E)/2, asinh x = log E, and
the addition theorems of asinh are identities of logarithms. p = (E + 1/E)/2 with E > 1 takes all p > 1,
where acosh p is defined.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from symad.core.graph import Node, rebuild, topological
from symad.ops.basic.arithmetic import add, div, sub
from symad.ops.basic.sources import Input, constant, input_node, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Select
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.positive_domains import taken


def by_exponentials(outputs: Sequence[Node]) -> list[Node] | None:
    """Two sides with other inputs; None where no input is the argument of asinh or acosh.

    An input is taken for larger than 1 only where every element needs its acosh.
    """
    outputs = expand_definitions(outputs)
    nodes = topological(outputs)
    everywhere = taken(outputs[0]) | taken(outputs[1])
    replaced: dict[Node, Node] = {}
    for n in nodes:
        if not isinstance(n.op, Apply) or n.op.head not in (sympy.asinh, sympy.acosh):
            continue
        if n.op.head is sympy.acosh and n not in everywhere:
            continue
        (x,) = n.args
        if isinstance(x.op, Input) and not getattr(x.op.symbol, "is_integer", False):
            replaced.setdefault(x, _written(x, n.op.head))
    if not replaced or any(isinstance(n.op, Select) for n in nodes):  # a branch may be for other values
        return None
    return list(rebuild(outputs, replaced))


def _written(x: Node, head: type) -> Node:
    """(E ∓ 1/E)/2 for asinh and acosh; E = 1 + F with F > 0 where E > 1."""
    free = input_node(sympy.Dummy(str(symbol_of(x)), positive=True), x.shape)
    large = head is sympy.acosh or getattr(symbol_of(x), "is_nonnegative", None)
    e = add(constant(1), free) if large else free
    over = div(constant(1), e)
    if not large and getattr(symbol_of(x), "is_nonpositive", None):
        e, over = div(constant(1), add(constant(1), free)), add(constant(1), free)
    return div(add(e, over) if head is sympy.acosh else sub(e, over), constant(2))
