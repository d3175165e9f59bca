"""Which nodes may be 0 on an open set: max(x, 0) is, x² is not.

Where an argument of a sign or a comparison is 0 on an open set, sign² = 1 is false and < differs from ≤.
An analytic function that is not 0 everywhere vanishes on a set without interior only. What jumps is
taken apart by structure; small scalars are evaluated for each choice of their signs. A value that is not
0 at one point modulo a prime is no zero function, so only a "may vanish" can be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

import numpy as np
import sympy

from symad.errors import SymadError
from symad.graph import Node, rebuild, topological
from symad.ops.arithmetic import Add, Mul
from symad.ops.contraction import Einsum
from symad.ops.elementwise import Apply
from symad.ops.powers import Pow
from symad.ops.selection import Select
from symad.ops.shaping import ShapingOp
from symad.ops.sources import ArrayConstant, Constant, Dimension, Eye, Input, Iota, constant, constant_value
from symad.verification.budget import Budget, Clock
from symad.verification.fields import Field
from symad.verification.integer_inputs import integer_inputs
from symad.verification.jumps import LooseSign, WeakSign, is_jump, is_loose
from symad.verification.signs import ODD, known_signs
from symad.verification.terms import moves_elements

NEVER_ZERO = {sympy.exp, sympy.cosh, sympy.sech, sympy.csch, sympy.coth, sympy.gamma}
ZERO_AT_ZERO = {*ODD, sympy.Abs}

MOST_SIGNS, MOST_ELEMENTS = 4, 1 << 20
"""Scalars of more signs, and larger arrays, may vanish without being looked at."""

PRIMES = (2147483647, 2147483587)
"""Both 3 mod 4 and below 2³¹. They are fixed: an unlucky one only makes the answer more cautious."""


class Vanishing:
    """What is known about the nodes of one rewriting."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._jumpy: dict[Node, bool] = {}
        self._loose: dict[Node, bool] = {}
        self._may: dict[Node, bool] = {}
        self._answers: dict[Node, bool] = {}

    def may(self, node: Node) -> bool:
        """Whether some element of a node may be 0 on an open set, or everywhere."""
        if node not in self._answers:
            self._learn(node)
            looked_at = self._may[node] and _is_never_zero_by_signs(node)
            self._answers[node] = (self._may[node] and not looked_at) or _has_zeros(node)
        return self._answers[node]

    def sign(self, node: Node) -> Any:
        """The sign function that fits a node."""
        if not self.may(node):
            return sympy.sign
        return LooseSign if self._loose[node] else WeakSign

    def _learn(self, root: Node) -> None:
        for node in topological([root]):
            if node not in self._may:
                self._jumpy[node] = is_jump(node) or any(self._jumpy[a] for a in node.args)
                self._loose[node] = is_loose(node) or any(self._loose[a] for a in node.args)
                self._may[node] = self._by_structure(node)

    def _by_structure(self, node: Node) -> bool:
        """Whether a node may vanish, from its arguments."""
        op, may = node.op, [self._may[a] for a in node.args]
        if isinstance(op, (Constant, ArrayConstant, Eye, Iota, Dimension)):
            return not isinstance(op, Dimension) and _is_zero_somewhere(node)
        if isinstance(op, Input):
            return self._jumpy[node] and getattr(op.symbol, "is_zero", None) is not False
        if not self._jumpy[node]:
            return False
        if isinstance(op, Add):
            return self._sum_may(node, may)
        if isinstance(op, Mul):
            return any(m for p, m in zip(op.powers, may, strict=True) if p == 1)
        if isinstance(op, Pow):
            return may[0]
        if isinstance(op, Select):
            return may[1] or may[2]
        if isinstance(op, Apply) and len(may) == 1 and op.head in ZERO_AT_ZERO:
            return may[0]
        if isinstance(op, Apply) and op.head in NEVER_ZERO:
            return False
        if isinstance(op, Einsum) or (isinstance(op, ShapingOp) and len(may) == 1):
            return not _is_product(node) or any(may)
        return True

    def _sum_may(self, node: Node, may: Sequence[bool]) -> bool:
        """A sum of one sign vanishes with all its terms; one with an input of its own never does."""
        if len(node.args) == 1:
            return may[0]
        signs = known_signs(node.args)
        turned = {s * signs[a] for s, a in zip(node.op.signs, node.args, strict=True)}  # type: ignore[attr-defined]
        if len(turned) == 1 and turned != {0}:
            return all(may)
        for k, term in enumerate(node.args):
            own = _linear_input(term)
            rest = [a for j, a in enumerate(node.args) if j != k]
            if own is not None and own not in topological(rest):
                return False
        return True


def _is_product(node: Node) -> bool:
    """Whether each element is a product of elements of the arguments, or one of them."""
    if isinstance(node.op, Einsum):
        return {k for labels in node.op.inputs for k in labels} == set(node.op.output)
    return True


def _linear_input(term: Node) -> Node | None:
    """The real input that a term is a multiple of, moved or not."""
    while moves_elements(term) or (isinstance(term.op, Mul) and len(term.args) == 2):
        if isinstance(term.op, Mul):
            a, b = term.args
            if term.op.powers != (1, 1) or not constant_value(a):
                return None
            term = b
        else:
            (term,) = term.args
    return term if isinstance(term.op, Input) and not is_jump(term) else None


def _is_zero_somewhere(node: Node) -> bool:
    op: Any = node.op
    if isinstance(op, Constant):
        return bool(op.value == 0)
    return not isinstance(op, ArrayConstant) or bool(np.any(op.array == 0))


def _is_never_zero_by_signs(node: Node) -> bool:
    """Whether a scalar whose only jumps are few signs is no zero function, whatever the signs are."""
    if node.shape or not _is_small(node):
        return False
    jumping = [n for n in topological([node]) if is_jump(n)]
    signs = [n for n in jumping if isinstance(n.op, Apply) and n.op.head is sympy.sign]
    if len(signs) < len(jumping) or len(signs) > MOST_SIGNS:
        return False
    for choice in product((1, -1), repeat=len(signs)):
        (piece,) = rebuild([node], dict(zip(signs, map(constant, choice), strict=True)))
        if _has_zeros(piece):
            return False
    return True


def _is_small(node: Node) -> bool:
    return sum(int(np.prod(n.shape)) for n in topological([node])) <= MOST_ELEMENTS


def _has_zeros(node: Node) -> bool:
    """Whether an element is 0 at random points modulo primes, with random values for functions."""
    from symad.verification.residues import Run
    from symad.verification.signatures import Signatures

    if not _is_small(node):
        return True
    field, rng = Field(PRIMES), Random(0)
    run = Run(field, rng, Signatures(field, rng), Clock(Budget()))
    for source, (low, high) in integer_inputs([node]).items():
        drawn = [rng.randrange(low, max(high, low + 1)) for _ in range(int(np.prod(source.shape)))]
        run.integers = {**run.integers, source: np.array(drawn, dtype=np.int64).reshape(source.shape)}
    try:
        (value,) = run.evaluate([node])
    except (SymadError, ArithmeticError):
        return True
    return bool(np.any(field.is_zero(value).all(axis=0)))
