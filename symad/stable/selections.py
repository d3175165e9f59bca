"""Values under one condition: c ? a : 0 and c ? b : 0 are added as c ? a + b : 0, where a + b may cancel."""

from __future__ import annotations

from symad.core.graph import Graph, Node, op_of, rebuild
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import Add, Mul, signed_product, signed_sum
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Constant, constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Select, select
from symad.stable.differences import complement
from symad.stable.normal_forms import head_of, negated, rational

MAX_CONDITIONS = 6
"""The most conditions in the terms of a sum."""

DEPTH = 6
"""The depth of sums, products and selections in which a condition is looked for."""

SUMS = frozenset((Add, Mul))
Case = tuple[Node, bool]
NONE: dict[Node, int] = {}
NEVER: frozenset[Case] = frozenset()


def of_one_function(condition: Node, a: Node, b: Node) -> Node | None:
    """c ? f(u) : f(−u) as f(c ? u : −u), which is evaluated once; also 1 − σ(u) beside σ(u)."""
    if head_of(a) is None and head_of(b) is None:
        return None
    f, g = (x if head_of(x) else complement(x) for x in (a, b))
    if f is None or g is None or head_of(f) is not head_of(g) or not len(f.args) == len(g.args) == 1:
        return None
    u, v = f.args[0], g.args[0]
    opposite = negated(u) is v or negated(v) is u
    return apply(op_of(f, Apply).head, select(condition, u, v)) if opposite else None


def where_equal(condition: Node, branch: Node) -> Node:
    """The branch for x = c with the number c in place of x: 1 + √x becomes 1 at x = 0."""
    if type(condition.op) is not Compare or condition.op.relation != "==":
        return branch
    numbers = [a for a in condition.args if rational(a) is not None]
    others = [a for a in condition.args if a not in numbers]
    return (_at(branch, others[0], numbers[0], DEPTH) if numbers and others else None) or branch


def _at(node: Node, x: Node, number: Node, depth: int) -> Node | None:
    """A sum of powers of x, where x is a number; None if it depends on anything else."""
    if node is x or rational(node) is not None:
        return number if node is x else node
    if not depth or type(node.op) not in (Add, Pow):
        return None
    args = [_at(a, x, number, depth - 1) for a in node.args]
    known = [a for a in args if a is not None]
    if len(known) < len(args):
        return None
    if type(node.op) is Add:
        return signed_sum(zip(node.op.signs, known, strict=True))
    base, exponent = (rational(a) for a in known)
    exact = exponent is not None and exponent > 0 and base in (0, 1)
    return constant(base) if exact else None


class Selections:
    """The conditions of selections in sums and products, which are also selected.

    ``inside``: for each node these conditions with their depths. ``zeros``: the conditions, and whether they
    hold, for which a node is 0 by a branch 0.
    """

    def __init__(self) -> None:
        """Nothing is known."""
        self.inside: dict[Node, dict[Node, int]] = {}
        self.zeros: dict[Node, frozenset[Case]] = {}
        self.known: dict[tuple[Node, Node, bool], Node] = {}

    def conditions(self, node: Node) -> dict[Node, int]:
        """The conditions in a node with their depths: those of its arguments have been asked for before."""
        found, kind = self.inside.get(node), type(node.op)
        if found is not None:
            return found
        if kind is not Select and (kind not in SUMS or self.inside.keys().isdisjoint(node.args)):
            return NONE
        below = [c for a in node.args if (c := self.inside.get(a))]
        found = {c: d + 1 for part in below for c, d in part.items() if d < DEPTH}
        found = found if len(found) < MAX_CONDITIONS else {}
        if kind is Select:
            found[node.args[0]] = 0
        if not found:
            return NONE
        self.zeros[node] = self._zeros(node)
        self.inside[node] = found
        return found

    def _zeros(self, node: Node) -> frozenset[Case]:
        args = [a for a in node.args if type(node.op) is not Add or type(a.op) is not Constant]
        below = [self.zeros.get(a, NEVER) for a in args]
        if type(node.op) is Mul:
            return NEVER.union(*below)
        if type(node.op) is Add:
            return below[0].intersection(*below[1:]) if len(args) == len(node.args) else NEVER
        condition, *branches = node.args
        made = {
            (condition, truth)
            for branch, truth, zeros in zip(branches, (True, False), below[1:], strict=True)
            if (type(branch.op) is Constant and constant_value(branch) == 0) or (condition, truth) in zeros
        }
        return frozenset(made)

    def outside(self, graph: Graph) -> Graph:
        """The graph with each selection as far outside as possible; its branches do not repeat it."""
        if not any([type(node.op) is Select for node in graph.nodes]):
            return graph
        inside = self.inside.keys()  # which grows with the selections that are met
        met = (n for n in graph.nodes if type(n.op) is Select or not inside.isdisjoint(n.args))
        if not any([self._may_move(node) for node in met]):
            return graph

        def moved(node: Node, args: Nodes) -> Node:
            made = node if args == node.args else Node.of(node.op, args)
            return made if type(made.op) is not Select and inside.isdisjoint(args) else self.moved(made)

        made = rebuild(graph, {n: n for n in graph.input_nodes}, moved)
        return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)

    def _may_move(self, node: Node) -> bool:
        """Whether a selection is in another one by the same condition, or in several terms of a sum."""
        found = self.conditions(node)
        if not found:
            return False
        if type(node.op) is Select:
            return not node.shape and any([node.args[0] in self.inside.get(b, NONE) for b in node.args[1:]])
        return type(node.op) is Add and any([self._alike(node, c) for c in found])

    def _alike(self, total: Node, condition: Node) -> list[int]:
        """The terms that are 0 on one side of a condition, if there are several; numbers join them."""
        cases = {(condition, True), (condition, False)}
        found = [k for k, a in enumerate(total.args) if not cases.isdisjoint(self.zeros.get(a, NEVER))]
        numbers = [k for k, a in enumerate(total.args) if type(a.op) is Constant]
        if found and len(found) + len(numbers) == len(total.args):
            found += numbers
        return found if len(found) > 1 else []

    def moved(self, made: Node) -> Node:
        """A selection whose branches do not repeat its condition; one selection of several terms of a sum."""
        found = self.conditions(made)
        if not found or (type(made.op) is Select and made.shape):
            return made  # in arrays, masks of zeros are left out later: inner guards stay
        if type(made.op) is Select:
            condition, *branches = made.args
            left = [
                self.assumed(b, condition, truth) for b, truth in zip(branches, (True, False), strict=True)
            ]
            return made if left == branches else self._selected(condition, left, made)
        for condition in found if type(made.op) is Add else ():
            alike = self._alike(made, condition)
            if alike:
                terms = list(zip(op_of(made, Add).signs, made.args, strict=True))
                part = signed_sum([terms[k] for k in alike])
                self.conditions(part)
                branches = [self.assumed(part, condition, truth) for truth in (True, False)]
                one = self._selected(condition, branches, part)
                rest = [term for k, term in enumerate(terms) if k not in alike]
                return self.moved(broadcast_to(signed_sum([(1, one), *rest]), made.shape)) if rest else one
        return made

    def _selected(self, condition: Node, branches: list[Node], like: Node) -> Node:
        made = broadcast_to(select(condition, *branches), like.shape)
        self.conditions(made)
        return made

    def equalities(self, total: Node) -> list[Node]:
        """The conditions x = 0 in a sum."""
        found = self.conditions(total)
        return [c for c, d in found.items() if d <= 3 and type(c.op) is Compare and c.op.relation == "=="]

    def assumed(self, node: Node, condition: Node, truth: bool) -> Node:
        """The node where a condition is true, or false; a product with a branch 0 is 0."""
        key = node, condition, truth
        if condition not in self.inside.get(node, NONE):
            return node
        if key not in self.known:
            self.known[key] = self._assumed(*key)
        return self.known[key]

    def _assumed(self, node: Node, condition: Node, truth: bool) -> Node:
        if type(node.op) is Select and node.args[0] is condition:
            return self.assumed(node.args[1 if truth else 2], condition, truth)
        divided = op_of(node, Mul).powers if type(node.op) is Mul and node.shape else ()
        args = tuple(
            [
                a if -1 in divided[k : k + 1] else self.assumed(a, condition, truth)  # divisors stay guarded
                for k, a in enumerate(node.args)
            ]
        )
        if args == node.args:
            return node
        if type(node.op) is Select:
            made = select(*args)
        elif type(node.op) is Add:
            made = signed_sum(zip(node.op.signs, args, strict=True))
        else:
            factors = list(zip(op_of(node, Mul).powers, args, strict=True))
            zero = any(p > 0 and constant_value(a) == 0 for p, a in factors)
            made = constant(0) if zero else signed_product(factors)
        self.conditions(made)
        return made
