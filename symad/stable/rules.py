"""Stable rewrites: each node, arguments first, in a form that loses no digits and does not overflow.

Sources: Higham, "Accuracy and Stability of Numerical Algorithms" (2002), sections 1.7 and 1.14; Blanchard,
Higham, Higham, "Accurately computing the log-sum-exp and softmax functions" (2021), algorithm 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import sympy
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.contents import fields_of, inner_graphs
from symad.core.graph import Graph, Node, Op, op_of, rebuild, topological
from symad.core.questions import Nodes
from symad.ops.arrays.softmax import ExponentialOp, LogSoftmax, Softmax
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul, signed_product, signed_sum
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Source, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select, select
from symad.stable.differences import Differences, Near, difference_of_squares, never
from symad.stable.exponentials import LOGARITHMS, guarded_product, of_logarithm, quotient
from symad.stable.normal_forms import head_of, negated, reflection, terms_of
from symad.stable.overflows import beyond_the_floats, flat, is_huge, within_range
from symad.stable.products import (
    better_product,
    has_pair,
    in_branches,
    is_quotient,
    may_have_pairs,
    may_simplify,
)
from symad.stable.removable import may_have_series, without_cancellation
from symad.stable.rows import NEAR_ONE, FormulaNode
from symad.stable.selections import Selections, of_one_function, where_equal
from symad.stable.shifts import without_logarithm, without_shift
from symad.sympy_functions.scalar_functions import sigmoid, softplus


def stabilize(graph: Graph, near: Near = never) -> Graph:
    """The graph with every rule applied, arguments first; ``near`` as in `Differences`."""
    bodies: dict[Graph, Graph] = {}
    rows = NodeRules(graph.nodes, last=True, near=near)

    def better_node(node: Node, args: Nodes) -> Node:
        inner = () if isinstance(node.op, (ElementwiseOp, Source)) else inner_graphs(node.op)
        if not inner:
            return rows.better(node, args)
        for body in inner:
            if body not in bodies:
                bodies[body] = stabilize(body)
        changed = [bodies[v] if isinstance(v, Graph) else v for v in fields_of(node.op)]
        return Node.of(type(node.op)(*changed), args)

    graph = rows.selections.outside(graph)
    made = rebuild(graph, {n: n for n in graph.input_nodes}, better_node)
    return within_range(Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report))


def smooth(outputs: Sequence[Node], kept: Collection[Node] = ()) -> tuple[tuple[Node, ...], list[Node]]:
    """The outputs in forms whose derivatives are stable.

    The second result is all nodes of these outputs, arguments first.

    Args:
        outputs: nodes that are to be differentiated.
        kept: nodes that stay unchanged, with all nodes below them.
    """
    order = topological(outputs)
    rows = NodeRules(order, last=False)
    if not rows.functions or not any(map(_may_change, order)):  # slopes of polynomials are as good
        return tuple(outputs), order
    made = rebuild(outputs, {n: n for n in order if n in kept or not n.args}, rows.better)
    return made, order if made == tuple(outputs) else topological(made)


def _may_change(node: Node) -> bool:
    """Whether a node may have a stable form: a logarithm, quotient, softmax, pair, sum of opposite signs."""
    op = node.op
    if type(op) is Add:
        return len(set(op.signs)) == 2 and any([type(a.op) in (Apply, Mul, Pow) for a in node.args])
    if type(op) is Mul:
        return -1 in op.powers or has_pair(node)
    return isinstance(op, ExponentialOp) or head_of(node) in (*LOGARITHMS, *NEAR_ONE, logaddexp, softplus)


class NodeRules:
    """All rules for the nodes of one graph; ``last``: whether it is not differentiated afterwards."""

    def __init__(self, order: Sequence[Node], last: bool, near: Near = never) -> None:
        """Which rules may apply to the nodes of a graph; no rule has been tried."""
        self.last, self.differences, self.selections = last, Differences(last, near=near), Selections()
        self.huge = last and any(map(is_huge, order))
        heads = {head_of(n) for n in order}
        heads |= {sigmoid} if sympy.tanh in heads else set()  # 1 ± tanh(u) by their rows
        self.exponentials = sympy.exp in heads
        quotients = any([may_have_series(n) for n in order])
        sums = any([isinstance(n.op, ExponentialOp) for n in order])
        self.functions = quotients or sums or heads != {None}
        self.products = may_have_pairs(heads, any(map(is_quotient, order)))

    def better(self, node: Node, args: Nodes) -> Node:
        """The node with new arguments, in its stable form."""
        made, rule = node.over(args), RULES.get(type(node.op))
        if rule is not None:
            root = self.differences.of_root(node.args[0]) if head_of(node) is sympy.log else None
            found = root or rule(self, node.op, args) or made
            made = found if constant_value(found) is not None else broadcast_to(found, made.shape)
        tabled = made if rule is None else self._by_tables(made)
        if tabled is made and made is not node and type(made.op) is Add:
            tabled = self._with_logarithms(made.op, made.args)
        if self.selections.inside:
            self.selections.conditions(tabled)
        if not self.last or type(node.op) is not Add or not self.functions:
            return tabled
        better = without_cancellation(node, tabled, self.differences.forms)
        if better is None and tabled is made and node not in self.differences.forms.large:
            return self._apart(made)
        return better or tabled

    def _with_logarithms(self, op: Add, args: Nodes) -> Node:
        """A sum whose logarithms the first rules may have made."""
        logs = [self._by_tables(a) if head_of(a) is sympy.log else a for a in args]
        return signed_sum(list(zip(op.signs, logs, strict=True)))

    def _apart(self, total: Node) -> Node:
        """The better sum where x ≠ 0, for a selection by x = 0 in it such as the slope of a distance."""
        for condition in self.selections.equalities(total):
            elsewhere = self.selections.assumed(total, condition, False)
            if elsewhere is total:
                continue
            made = self.better(elsewhere, elsewhere.args)
            if made is not elsewhere and type(elsewhere.op) is Add:
                return broadcast_to(select(condition, total, made), total.shape)
        return total

    def _by_tables(self, node: Node) -> Node:
        """A sum, product or logarithm by the rows of the tables; other nodes unchanged."""
        made, op = None, node.op
        kind = type(op)
        if kind is Add and len(node.args) == 1:
            inside = self._by_tables(node.args[0])
            made = None if inside is node.args[0] else signed_sum([(op_of(node, Add).signs[0], inside)])
        elif kind is Add:
            made = self.differences.better_sum(op_of(node, Add), node.args)
            if made is None and self.last:
                made = difference_of_squares(op_of(node, Add), node.args)
        elif kind is Mul:
            forms = self.differences.forms
            if self.products and may_simplify(forms.monomial(node)[1]):
                made = better_product(node, forms, self.last)
            if made is None and self.last and any([type(a.op) is Select for a in node.args]):
                made = in_branches(node, forms)
        elif self.last and head_of(node) is sympy.log:
            made = self.differences.logarithm(node.args[0])
        return node if made is None else made

    # ---- logarithms, exponentials, numbers -------------------------------------------------------------

    def of_function(self, op: Apply, args: Nodes) -> Node | None:
        """Logarithms of exponentials, functions of 1 + x, and f(−u) as ±f(u)."""
        reflected = reflection(Node.of(op, args)) if negated(args[0]) is not None else None
        if reflected is not None:
            return signed_sum([reflected])
        made = of_logarithm(op, args, self.last) if op.head in LOGARITHMS else None
        row = NEAR_ONE.get(op.head) if made is None else None
        if row is None or not (self.last or row.early):
            return made
        terms = terms_of(args[0])
        for k, (sign, term) in enumerate(terms):
            if len(terms) > 1 and sign == 1 and constant_value(term) == 1:
                return row.result(FormulaNode(signed_sum(terms[:k] + terms[k + 1 :]))).node
        return None

    def of_sum(self, op: Add, args: Nodes) -> Node | None:
        """Differences of logarithms; numbers beyond the floats."""
        made = without_logarithm(op, args)
        if made is not None or not self.huge:
            return made
        return beyond_the_floats(list(zip(op.signs, args, strict=True)))

    def of_product(self, op: Mul, args: Nodes) -> Node | None:
        """Quotients of exponentials; numbers beyond the floats."""
        if self.last and self.exponentials:
            guarded = guarded_product(op, args)
            if guarded is not None:
                return guarded
        if not self.huge and -1 not in op.powers:
            return None
        factors = list(zip(op.powers, args, strict=True))
        nested = [part for _, f in factors if type(f.op) is Mul for part in f.args]
        if self.huge and any(map(is_huge, nested)):
            return signed_product([(p * q, g) for p, f in factors for q, g in flat(f) or [(1, f)]])
        return quotient(factors) if -1 in op.powers else None

    def of_selection(self, op: Select, args: Nodes) -> Node | None:
        """One function of a selection; branches that do not repeat its condition: rows may make some."""
        one = of_one_function(*args)
        if one is not None:
            return one
        made: Node | None = None
        if self.last and (known := where_equal(*args[:2])) is not args[1]:
            made = select(args[0], known, args[2])
        elif self.selections.inside:
            made = self.selections.moved(Node.of(op, args))
        return None if made is None or (made.op is op and made.args == args) else made


RULES: dict[type[Op], Callable[[NodeRules, Any, Nodes], Node | None]] = {
    Add: NodeRules.of_sum,
    Mul: NodeRules.of_product,
    Apply: NodeRules.of_function,
    Select: NodeRules.of_selection,
    Softmax: lambda rules, op, args: without_shift(op, args),
    LogSoftmax: lambda rules, op, args: without_shift(op, args),
}
"""The first rules, by ops: a numerically better node for ``op(*args)``, or None."""
