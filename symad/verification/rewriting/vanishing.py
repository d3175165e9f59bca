"""Which nodes may be 0 on an open set: max(x, 0) is, x² is not.

Where an argument of a sign or a comparison is 0 on an open set, sign² = 1 is false and < differs from ≤.
An analytic function that is not 0 everywhere vanishes on a set without interior only. What jumps is
taken apart by structure; small scalars are evaluated for each choice of their signs, modulo fixed primes.
Only a "may vanish" can be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from random import Random
from typing import Any

import numpy as np
import sympy

from symad.core.graph import Node, Op, op_of, rebuild, topological
from symad.errors import SymadError
from symad.facts.functions import OF_ARGUMENT, fact
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, ShapingOp, Slice, broadcast_to
from symad.ops.basic.sources import ArrayConstant, Constant, Eye, Input, Iota, constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select
from symad.verification.budget import Budget, Meter
from symad.verification.fields.integer_inputs import integer_inputs
from symad.verification.fields.prime_fields import Array, Field
from symad.verification.random_fields.function_values import Signatures
from symad.verification.random_fields.residues import Run
from symad.verification.terms.discontinuities import LooseSign, WeakSign, is_jump, is_loose, unseen
from symad.verification.values.constant_exponents import is_nonzero_somewhere, may_cancel

# ---- nodes at random points modulo fixed primes --------------------------------------------------

PRIMES = (2147483647, 2147483587)
"""Both 3 mod 4 and below 2³¹. They are fixed: an unlucky one only makes answers more cautious."""

MAX_SAMPLED_ELEMENTS = 1 << 21
"""The maximum number of elements that are evaluated."""


class Samples:
    """One evaluation, with random values for functions, that grows with the nodes it is asked about."""

    def __init__(self) -> None:
        """Nothing is evaluated yet."""
        self.field, rng = Field(PRIMES), Random(0)
        self.run = Run(self.field, rng, Signatures(self.field, rng), Meter(Budget()))
        self.values: dict[Node, Array | None] = {}
        self.elements = 0

    def has_zeros(self, node: Node) -> bool:
        """Whether an element is 0 in all lanes, has no value, or is beyond the limits."""
        new = unseen(node, self.values)
        moved = [n for n in new if isinstance(n.op, (Gather, ScatterAdd))]
        for source, (low, high) in integer_inputs(moved).items():
            if source not in self.values:
                drawn = np.random.default_rng(0).integers(low, max(high, low + 1), size=source.shape)
                self.run.integers = {**self.run.integers, source: drawn}
        for n in new:
            self.values[n] = self._value(n)
        value = self.values[node]
        return value is None or bool(np.any(self.field.is_zero(value).all(axis=0)))

    def _value(self, node: Node) -> Array | None:
        self.elements += prod(node.shape)
        arguments = [v for v in map(self.values.get, node.args) if v is not None]
        if self.elements > MAX_SAMPLED_ELEMENTS or len(arguments) < len(node.args):
            return None
        try:
            return self.run.value(node, arguments)
        except (SymadError, ArithmeticError):
            return None


MAX_SIGNS_CONSIDERED = 4
"""The maximum number of signs of a scalar that is looked at; others count as vanishing."""


class Vanishing:
    """What is known about the nodes of one rewriting."""

    def __init__(self, weak_sign: Callable[[Node], int]) -> None:
        """``weak_sign`` is 1 for what is nowhere negative, −1 for what is nowhere positive, or 0."""
        self._weak_sign = weak_sign
        self._jumps: dict[Node, frozenset[Node]] = {}
        """The jumps below each node, but no more than one beyond `MAX_SIGNS_CONSIDERED`."""
        self._loose: dict[Node, bool] = {}
        self._may: dict[Node, bool] = {}
        self._answers: dict[Node, bool] = {}
        self._samples = Samples()
        self._hidden: set[Node] = set()
        """What no point shows not to be 0: it may cancel by a relation that is not known."""

    def may(self, node: Node) -> bool:
        """Whether some element of a node may be 0 on an open set, or everywhere."""
        if node not in self._answers:
            self._learn(node)
            known = not self._may[node] or self._is_never_zero_by_signs(node)
            if may_cancel(node) and not is_nonzero_somewhere(node):
                self._hidden.add(node)
            hidden = node in self._hidden
            self._answers[node] = not known or hidden or self._samples.has_zeros(node)
        return self._answers[node]

    def sign(self, node: Node) -> sympy.FunctionClass:
        """The sign function that fits a node."""
        if not self.may(node):
            return sympy.sign
        return LooseSign if self._loose[node] or node in self._hidden else WeakSign

    def _learn(self, root: Node) -> None:
        for node in unseen(root, self._may):
            own = frozenset([node] if is_jump(node) else [])
            found = own.union(*[self._jumps[a] for a in node.args])
            self._jumps[node] = frozenset(list(found)[: MAX_SIGNS_CONSIDERED + 1])
            self._loose[node] = is_loose(node) or any(self._loose[a] for a in node.args)
            self._may[node] = self._by_structure(node)

    def _by_structure(self, node: Node) -> bool:
        """Whether a node may vanish, from its arguments."""
        if not node.args:
            return _source_may(node)
        if not self._jumps[node]:
            return False
        may = [self._may[a] for a in node.args]
        if isinstance(node.op, Add):
            return self._sum_may(node, may)
        return next((rule(node, may) for kinds, rule in RULES if isinstance(node.op, kinds)), True)

    def _sum_may(self, node: Node, may: Sequence[bool]) -> bool:
        """A sum of one sign vanishes with all its terms; one with an input of its own never does."""
        if len(node.args) == 1:
            return may[0]
        signs = map(self._weak_sign, node.args)
        turned = {s * sign for s, sign in zip(op_of(node, Add).signs, signs, strict=True)}
        if len(turned) == 1 and turned != {0}:
            return all(may)
        for k, term in enumerate(node.args):
            leaves = [] if self._jumps[term] else _multilinear_inputs(term)
            rest = topological([a for j, a in enumerate(node.args) if j != k]) if leaves else []
            if any(not _occurs(leaf, rest) for leaf in leaves) and not self._samples.has_zeros(term):
                return False
        return True

    def _is_never_zero_by_signs(self, node: Node) -> bool:
        """Whether what has few signs, and no other jump, is nowhere a zero function, whatever these are.

        Of an array each element has signs of its own: those at its place.
        """
        signs = self._jumps[node]
        several = any(np.prod(n.shape) > 1 for n in signs)
        if len(signs) > MAX_SIGNS_CONSIDERED or (several and not self._is_elementwise_in(signs, node)):
            return False
        if not all(isinstance(n.op, Apply) and n.op.head is sympy.sign for n in signs):
            return False
        for choice in product((1, -1), repeat=len(signs)):
            numbers = [broadcast_to(constant(c), n.shape) for n, c in zip(signs, choice, strict=True)]
            (piece,) = rebuild([node], dict(zip(signs, numbers, strict=True)))
            if self._samples.has_zeros(piece):
                return False
        return True

    def _is_elementwise_in(self, signs: frozenset[Node], node: Node) -> bool:
        """Whether each element depends on the signs at its own place, or on scalar ones, alone."""
        between = [n for n in topological([node]) if self._jumps[n] and n not in signs]
        same = all(n.shape in (node.shape, ()) for n in (*between, *signs))
        return same and all(isinstance(n.op, ElementwiseOp) for n in between)


def _multilinear_inputs(term: Node) -> list[Node]:
    """The real inputs, or slices of them, of each of which all elements of a term are multiples."""
    leaves = []
    for n in topological([term]):
        if (isinstance(n.op, Slice) and isinstance(n.args[0].op, Input)) or isinstance(n.op, Input):
            leaves.append(n)
        elif not isinstance(n.op, (Mul, Einsum, Broadcast, Reshape, Constant)) or (
            isinstance(n.op, Mul) and -1 in n.op.powers
        ):
            return []
    return [leaf for leaf in leaves if not (isinstance(leaf.op, Input) and is_jump(leaf))]


def _occurs(leaf: Node, nodes: Sequence[Node]) -> bool:
    """Whether an input, or a part of one, is used by some nodes; disjoint slices of it are not."""
    if not isinstance(leaf.op, Slice):
        return leaf in nodes
    (whole,) = leaf.args
    users = [n for n in nodes if whole in n.args]
    return any(not (isinstance(n.op, Slice) and _disjoint(leaf, n)) for n in users)


def _disjoint(a: Node, b: Node) -> bool:
    """Whether two slices of one array share no element."""
    return any(not set(_places(a, axis)) & set(_places(b, axis)) for axis in range(len(a.args[0].shape)))


def _places(node: Node, axis: int) -> range:
    op: Any = node.op
    start, count, step = op.start[axis], op.count[axis], op.step[axis]
    return range(start, start + count * step, step)


def _source_may(node: Node) -> bool:
    op: Op = node.op
    if isinstance(op, Input):
        return is_jump(node) and getattr(op.symbol, "is_zero", None) is not False
    if isinstance(op, Constant):
        return bool(op.value == 0)
    if isinstance(op, ArrayConstant):
        return bool(np.any(op.array == 0))
    return isinstance(op, (Eye, Iota))


def _function_may(node: Node, may: Sequence[bool]) -> bool:
    head = op_of(node, Apply).head
    with_argument = len(may) == 1 and (fact(head).sign == OF_ARGUMENT or head is sympy.Abs)
    return may[0] if with_argument else not fact(head).never_zero


def _moved_may(node: Node, may: Sequence[bool]) -> bool:
    """Elements of one array, or products of elements of several: others are sums, or choices by indices."""
    if isinstance(node.op, Einsum):
        return any(may) or {k for labels in node.op.inputs for k in labels} != set(node.op.output)
    return len(may) > 1 or any(may)


RULES: tuple[tuple[Any, Callable[[Node, Sequence[bool]], bool]], ...] = (
    (Mul, lambda n, may: any(m for p, m in zip(op_of(n, Mul).powers, may, strict=True) if p == 1)),
    (Pow, lambda n, may: may[0]),
    (Select, lambda n, may: may[1] or may[2]),
    (Apply, _function_may),
    ((Einsum, ShapingOp), _moved_may),
)
"""What may vanish with which arguments, by ops; of others nothing is known."""
