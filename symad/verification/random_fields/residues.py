"""What each op of the basis does to residues: arrays (T, *shape), one prime field for each lane.

Undefined elements (1/0, log 0) are marked and spread like NaN, but a selection whose indicator is
exactly 0 or 1 takes only the marks of the branch it takes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from random import Random
from typing import Any

import numpy as np
import sympy

from symad.core.graph import Node, Op, topological
from symad.core.questions import Values, evaluate, question
from symad.facts.functions import ODD, fact
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.reduction import Product
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import ArrayConstant, Constant, Eye, Input, Iota
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Select
from symad.verification.budget import Meter, Unsupported, steps_of_residues
from symad.verification.fields.prime_fields import Array, Field
from symad.verification.random_fields.function_values import Signatures
from symad.verification.random_fields.undefined_marks import lift_marks, move, spread_marks
from symad.verification.terms.discontinuities import WeakSign
from symad.verification.terms.linear_terms import number, order_of_root
from symad.verification.terms.signs import weak_sign


@dataclass(eq=False)
class Run:
    """One evaluation of graphs at random points of T prime fields."""

    field: Field
    rng: Random
    signatures: Signatures
    meter: Meter
    root_orders: Mapping[Node, int] = dataclasses.field(default_factory=dict)
    """Inputs of which roots are taken, with the order L: their value is drawn as X^L."""
    integers: Mapping[Node, Array] = dataclasses.field(default_factory=dict)
    """Inputs that are indices or exponents, with the integers they are given."""
    marks: dict[Node, Array] = dataclasses.field(default_factory=dict)
    """Where a value is undefined: boolean arrays (T, *shape), only for nodes that have some."""
    values: dict[Node, Array] = dataclasses.field(default_factory=dict)
    _signs: dict[Node, int] = dataclasses.field(default_factory=dict)
    """For the signs that are known everywhere."""

    def evaluate(self, outputs: Sequence[Node]) -> list[Array]:
        """The residues of some nodes in the basis."""
        order = topological(outputs)
        last = {a: n for n in order for a in n.args}
        kept = set(outputs)
        for node in order:
            values = [self.values[a] for a in node.args]
            before = self.field.operations
            self.values[node] = self.value(node, values)
            done = self.field.operations - before
            self.meter.spend(steps_of_residues(node, self.values[node], done))
            for a in node.args:
                if last[a] is node and a not in kept:
                    self.values.pop(a, None)
        return [self.values[o] for o in outputs]

    def value(self, node: Node, values: Sequence[Array]) -> Array:
        """The residues of one node from those of its arguments; undefined elements are marked."""
        self.meter.check_size(self.field.lanes * prod(node.shape))
        if 0 in node.shape:
            return self.field.zeros(node.shape)
        value: Array = residue(node.op, node, tuple(values), self)
        if any(a in self.marks for a in node.args) and not isinstance(node.op, Select):
            self.mark(node, spread_marks(node, values, [self.marks_of(a) for a in node.args], self.indices))
        return value

    def mark(self, node: Node, where: Array) -> None:
        """Say where a value is undefined."""
        if np.any(where):
            old = self.marks.get(node)
            self.marks[node] = where if old is None else old | where

    def leave(self, node: Node, arg: Node, value: Array) -> None:
        """A root or logarithm of an argument is undefined in regions where the argument is negative."""
        if self.signatures.domains and not weak_sign(arg, self._signs):
            self.mark(node, np.broadcast_to(self.signatures.negative(value), (self.field.lanes, *node.shape)))

    def marks_of(self, node: Node) -> Array:
        """Where a value is undefined: (T, *shape)."""
        found = self.marks.get(node)
        return np.zeros((self.field.lanes, *node.shape), dtype=bool) if found is None else found

    def lift(self, value: Array, arg: Node, y: Node) -> Array:
        """The value of an argument with axes to join those of ``y``."""
        if arg.shape or not y.shape:
            return value
        return value.reshape((self.field.lanes,) + (1,) * len(y.shape) + self.field.tail)

    def indices(self, value: Array, count: int) -> Array:
        """Indices of rows, 0 ≤ i < count.

        Raises:
            Unsupported: they are none, so they depend on inputs that have no fixed value.
        """
        found = self.integer_values(value, "indices")
        if np.any(found < 0) or np.any(found >= count):
            raise Unsupported("indices depend on the values of inputs")
        return found

    def integer_values(self, value: Array, what: str) -> Array:
        """Small integers that are the same in all lanes, such as matrix exponents.

        Raises:
            Unsupported: they are not, so they depend on inputs that have no fixed value.
        """
        base = value[..., 0] if self.field.levels else value
        primes = self.field.modulus(base.ndim).astype(object)
        signed = base.astype(object)
        signed = np.where(signed > primes // 2, signed - primes, signed)
        if np.any(signed != signed[:1]) or np.any(abs(signed[0]) > 1 << 20):
            raise Unsupported(f"{what} depend on the values of inputs")
        return np.asarray(signed[0]).astype(np.int64)


@question
def residue(op: Op, y: Node, values: Values, run: Run) -> Array:
    """The residues of ``y = op(...)``: an array (T, *y.shape), from those of its arguments."""


@residue.dispatch
def opaque_residue(op: Op, y: Node, values: Values, run: Run) -> Array:
    """An op without a rule is some function of its arguments: random values for each new argument."""
    return run.signatures.opaque_array(op, values, y.shape)


# ---- sources ------------------------------------------------------------------------------------


@residue.dispatch
def input_residue(op: Input, y: Node, values: Values, run: Run) -> Array:
    if y in run.integers:
        return run.field.constants(np.asarray(run.integers[y]))
    order = run.root_orders.get(y)
    if order is None:
        return run.field.random(run.rng, y.shape)
    roots = run.signatures.nonzero(prod(y.shape)).reshape((run.field.lanes, *y.shape, *run.field.tail))
    value = run.field.power(roots, order)
    run.signatures.enter_root(value, order, roots)
    return value


@residue.dispatch
def constant_residue(op: Constant, y: Node, values: Values, run: Run) -> Array:
    value = op.value
    if isinstance(value, float) and value - value != 0:
        run.mark(y, np.ones(run.field.lanes, dtype=bool))
        return run.field.zeros(())
    if isinstance(value, sympy.Float):
        exact = sympy.Rational(value)
        value = Fraction(int(exact.p), int(exact.q))
    if isinstance(value, sympy.Basic):
        name = run.field.constant(0)
        return run.signatures.opaque(("constant", value), [name])
    return run.field.constant(Fraction(value))


@residue.dispatch
def array_constant_residue(op: ArrayConstant, y: Node, values: Values, run: Run) -> Array:
    """Floats are their exact binary values, over a common power of two."""
    array = op.array
    if array.dtype.kind != "f":
        return run.field.constants(array)
    finite = np.isfinite(array)
    run.mark(y, np.broadcast_to(~finite, (run.field.lanes, *array.shape)))
    ratios = [v.as_integer_ratio() for v in np.where(finite, array, 0).ravel().tolist()]
    over = max((d for _, d in ratios), default=1)
    numerators = np.array([n * (over // d) for n, d in ratios] + [0], dtype=object)[:-1].reshape(array.shape)
    return run.field.constants(numerators, over)


@residue.dispatch
def integers_residue(op: Iota | Eye, y: Node, values: Values, run: Run) -> Array:
    return run.field.constants(np.asarray(evaluate(op, ())).astype(np.int64))


# ---- arithmetic ---------------------------------------------------------------------------------


@residue.dispatch
def add_residue(op: Add, y: Node, values: Values, run: Run) -> Array:
    total: Any = None
    p = run.field.modulus(1 + len(y.shape) + len(run.field.tail))
    for sign, value, arg in zip(op.signs, values, y.args, strict=True):
        term = run.lift(value, arg, y)
        term = term if sign == 1 else p - term
        total = term if total is None else total + term
    return total % p


@residue.dispatch
def mul_residue(op: Mul, y: Node, values: Values, run: Run) -> Array:
    over: Any = None
    under: Any = None
    for power, value, arg in zip(op.powers, values, y.args, strict=True):
        factor = run.lift(value, arg, y)
        if power == 1:
            over = factor if over is None else run.field.mul(over, factor)
        else:
            under = factor if under is None else run.field.mul(under, factor)
    if under is None:
        return over
    inverse = divided(under, y, run)
    return inverse if over is None else run.field.mul(over, inverse)


def divided(under: Array, y: Node, run: Run) -> Array:
    """1/under; where it is 0 the value ``y`` is undefined."""
    inverse, zero = run.field.inverse(under)
    run.mark(y, np.broadcast_to(zero, (run.field.lanes, *y.shape)))
    return inverse


@residue.dispatch
def pow_residue(op: Pow, y: Node, values: Values, run: Run) -> Array:
    base, value = run.lift(values[0], y.args[0], y), number(y.args[1])
    if value is None:
        raise Unsupported("a power whose exponent is no number")
    if value.denominator == 1:
        return run.field.power(base, int(value))
    run.leave(y, y.args[0], base)
    order = order_of_root(y)
    if order is None:
        return run.signatures.opaque(("power", value), [base])
    return run.signatures.root(base, order)


@residue.dispatch
def product_residue(op: Product, y: Node, values: Values, run: Run) -> Array:
    (a,) = values
    tail = (slice(None),) * len(run.field.tail)
    result = a[(..., 0, *tail)]
    for k in range(1, y.args[0].shape[-1]):
        result = run.field.mul(result, a[(..., k, *tail)])
    return result


@residue.dispatch
def einsum_residue(op: Einsum, y: Node, values: Values, run: Run) -> Array:
    return run.field.einsum(op.spec, *values)


# ---- functions and selection --------------------------------------------------------------------


@residue.dispatch
def apply_residue(op: Apply, y: Node, values: Values, run: Run) -> Array:
    functions = run.signatures
    arguments = [
        np.broadcast_to(run.lift(v, a, y), _full(y, run)) for v, a in zip(values, y.args, strict=True)
    ]
    if op.head is sympy.exp:
        return functions.exponential(arguments[0])
    if op.head is sympy.sin:
        return functions.rotation(arguments[0])[1]
    if op.head is sympy.cos:
        return functions.rotation(arguments[0])[0]
    if op.head in (sympy.sign, WeakSign):
        return functions.sign(arguments[0], related=op.head is sympy.sign)
    if op.head is sympy.log:
        run.mark(y, run.field.is_zero(arguments[0]))
        run.leave(y, y.args[0], arguments[0])
        return functions.logarithm(arguments[0])
    return functions.opaque(op.head, arguments, odd=fact(op.head).parity == ODD and len(arguments) == 1)


def _full(y: Node, run: Run) -> tuple[int, ...]:
    return (run.field.lanes, *y.shape, *run.field.tail)


@residue.dispatch
def select_residue(op: Select, y: Node, values: Values, run: Run) -> Array:
    """b + c (a − b) for the indicator c."""
    c, a, b = (np.broadcast_to(run.lift(v, n, y), _full(y, run)) for v, n in zip(values, y.args, strict=True))
    if any(arg in run.marks for arg in y.args):
        marks = [
            np.broadcast_to(lift_marks(run.marks_of(arg), arg, y), (run.field.lanes, *y.shape))
            for arg in y.args
        ]
        no = run.field.is_zero(c)
        yes = run.field.is_zero(run.field.sub(c, np.broadcast_to(run.field.unit(c.ndim), c.shape)))
        run.mark(y, marks[0] | (marks[1] & ~no) | (marks[2] & ~yes))
    return run.field.add(b, run.field.mul(c, run.field.sub(a, b)))


@residue.dispatch
def compare_residue(op: Compare, y: Node, values: Values, run: Run) -> Array:
    """[a == 0] in the basis; equal means in every lane."""
    zero = run.field.is_zero(run.lift(values[0], y.args[0], y))
    zero = np.broadcast_to(zero.all(axis=0), zero.shape)
    return run.field.embed(zero.astype(np.int64).astype(run.field.dtype))


# ---- moving elements ----------------------------------------------------------------------------


@residue.dispatch
def shaping_residue(op: ShapingOp, y: Node, values: Values, run: Run) -> Array:
    """Every op that moves elements and adds none: its own evaluation says what goes where."""
    return move(op, y, values, run.field.tail)


@residue.dispatch
def gather_residue(op: Gather, y: Node, values: Values, run: Run) -> Array:
    return values[0][:, run.indices(values[1], int(y.args[0].shape[0]))]


@residue.dispatch
def scatter_add_residue(op: ScatterAdd, y: Node, values: Values, run: Run) -> Array:
    indices = run.indices(values[0], int(op.size))
    result = run.field.zeros(y.shape)
    at: Any = (slice(None), indices)
    np.add.at(result, at, values[1])
    return result % run.field.modulus(result.ndim)
