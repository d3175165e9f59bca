"""The derivation of a derivative, step by step, with the name of each rule: ``explain(as_latex=True)``.

Every step s_k = f(s_i, ...) gives its tangent ṡ_k by one rule, in terms of the tangents of its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy

from symad.core.graph import ZERO, Graph, Node, Op, topological
from symad.core.identifiers import visible
from symad.core.questions import jvp, question
from symad.display.latex import escaped
from symad.display.typesetting.contractions import flips_of_product
from symad.display.typesetting.graphs import Latex, called
from symad.display.typesetting.pieces import LatexAtom, Piece, accented, write
from symad.display.typesetting.rules import typeset
from symad.errors import EvaluationError
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.sources import Constant, Dimension, Input, Source, input_node
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Condition, Select

DOT = r"\dot"

FIXED = (Constant, Dimension)
"""Factors without a tangent."""

MAX_STEPS = 80
"""The maximum number of steps of a derivation."""


@question
def rule_name(op: Op, node: Any) -> Any:
    """The name of the derivative rule of an op."""


@rule_name.dispatch
def rule_of_others(op: Op, node: Node) -> str:
    """The name of the op, in words. A linear op is its own derivative, and the rule says so."""
    name = type(op).__name__
    words = "".join(c if c.islower() else f" {c.lower()}" for c in name).strip()
    return f"{words}, linear" if op.linear else f"derivative of {words}"


@rule_name.dispatch
def rule_of_sum(op: Add, node: Node) -> str:
    return "sum rule"


@rule_name.dispatch
def rule_of_product(op: Mul, node: Node) -> str:
    varying = [p for a, p in zip(node.args, op.powers, strict=True) if not isinstance(a.op, FIXED)]
    if varying == [1]:
        return "constant factor"
    return "quotient rule" if -1 in varying else "product rule"


@rule_name.dispatch
def rule_of_power(op: Pow, node: Node) -> str:
    return "power rule"


@rule_name.dispatch
def rule_of_function(op: Apply, node: Node) -> str:
    return f"chain rule, derivative of {op.head.__name__}"


@rule_name.dispatch
def rule_of_contraction(op: Einsum, node: Node) -> str:
    if len(op.inputs) == 1:
        return "transposition, linear" if set(op.output) == set(op.inputs[0]) else "sums are linear"
    whole = len(op.inputs) == 2 and flips_of_product(op) is not None
    return "product rule of a matrix product" if whole else "product rule of a contraction"


@rule_name.dispatch
def rule_of_cases(op: Select, node: Node) -> str:
    return "each case by itself"


@rule_name.dispatch
def rule_of_condition(op: Condition, node: Node) -> str:
    return "constant between jumps"


def derivation(graph: Graph) -> Latex:
    """The steps of a graph, their tangents, and the rule of each.

    Raises:
        EvaluationError: the graph has more than 80 steps.
    """
    names = _names(graph)
    steps = [n for n in graph.nodes if not isinstance(n.op, Source)]
    if len(steps) > MAX_STEPS:
        raise EvaluationError(
            f"{graph.name} has {len(steps)} steps, too many for a derivation (at most {MAX_STEPS}); explain "
            "a smaller instance"
        )
    lines = []
    for node in steps:
        name = write(names[node])
        state = write(typeset(node.op, node, [names[a] for a in node.args]))
        tangent = write(_tangent(node, names))
        rule = escaped(rule_name(node.op, node))
        lines.append(rf"{name} &= {state} & {accented(DOT, name)} &= {tangent} && \text{{{rule}}}")
    results = ", ".join(write(names[o]) for o in graph.output_nodes)
    results = results if len(graph.output_nodes) == 1 else rf"\left({results}\right)"
    lines.append(f"{called(graph)} &= {results}")
    body = " \\\\\n".join(lines)
    return Latex(visible(f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"))


def _names(graph: Graph) -> dict[Node, Piece]:
    """Inputs and numbers by their names, steps as s_1, s_2, ..."""
    names: dict[Node, Piece] = {n: typeset(n.op, n, ()) for n in graph.nodes if isinstance(n.op, Source)}
    steps = [n for n in graph.nodes if n not in names]
    return names | {n: LatexAtom(f"s_{{{k}}}") for k, n in enumerate(steps, 1)}


def _tangent(node: Node, names: Mapping[Node, sympy.Expr]) -> Piece:
    """ṡ of a node in terms of its arguments and their tangents."""
    free = [not isinstance(a.op, Source) or isinstance(a.op, Input) for a in node.args]
    local = [_local(a, k, names) for k, a in enumerate(node.args)]
    dots = [input_node(sympy.Dummy(f"d{k}", real=True), a.shape) for k, a in enumerate(node.args)]
    given = tuple(dot if flag else ZERO for dot, flag in zip(dots, free, strict=True))
    again = Node.of(node.op, tuple(local))
    made = jvp(node.op, again, given)
    if not isinstance(made, Node):
        return LatexAtom("0")
    pieces: dict[Node, Piece] = {again: names[node]}
    pieces.update({x: names[a] for x, a in zip(local, node.args, strict=True)})
    for dot, a in zip(dots, node.args, strict=True):
        pieces[dot] = LatexAtom(accented(DOT, write(names[a])))
    return written(made, pieces)


def _local(arg: Node, k: int, names: Mapping[Node, Piece]) -> Node:
    """An argument as a separate input; numbers stay, since rules examine them."""
    if isinstance(arg.op, FIXED):
        return arg
    return input_node(sympy.Dummy(f"x{k}", real=True), arg.shape)


def written(node: Node, given: Mapping[Node, Piece]) -> Piece:
    """A node in terms of the pieces of other nodes."""
    pieces = dict(given)
    for part in topological([node], pieces):
        args: Sequence[Piece] = [pieces[a] for a in part.args]
        pieces[part] = typeset(part.op, part, args)
    return pieces[node]
