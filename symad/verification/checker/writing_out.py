"""Graphs written out: each op of arrays as formulas for the elements of its value.

An array is a NumPy array of terms. There is one short rule for each op, the definition of that op; a graph
with another op is not covered. Sizes are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
import sympy

from symad.core.graph import Node, Op, topological
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.arrays.sources import ArrayConstant, Constant, Eye, Input, Iota
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.arithmetic import Add, Mul
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Logic, Select
from symad.ops.fused.softmax import LogSoftmax, LogSumExp, Softmax, SoftmaxTangent
from symad.ops.linalg.cholesky import Cholesky, Triangle, TriangularSolve
from symad.ops.linalg.solve_det import Determinant, LogDeterminant, Solve
from symad.ops.loops.scan import Scan
from symad.verification.checker.functions import ALWAYS, HEADS
from symad.verification.checker.terms import Refused, Term, Terms

Array: TypeAlias = "np.ndarray[Any, Any]"
Rule: TypeAlias = "Callable[[Any, Node, list[Array], Terms], Array]"

MOST_ELEMENTS = 4096
"""Larger arrays are not written out."""

MOST_ROWS = 3
"""Larger matrices are not inverted by determinants."""

RULES: dict[type[Op], Rule] = {}


def rule(*ops: type[Op]) -> Callable[[Rule], Rule]:
    """Enter the rule of some ops in the table."""

    def enter(made: Rule) -> Rule:
        for op in ops:
            RULES[op] = made
        return made

    return enter


class NotCovered(Refused):
    """A graph has an op or a size for which there is no rule."""


def write_out(outputs: Sequence[Node], known: dict[Node, Array], terms: Terms) -> list[Array]:
    """The elements of nodes as terms; ``known`` has those of some nodes, and gets those of all others."""
    for node in topological(outputs):
        if node in known:
            continue
        made = RULES.get(type(node.op))
        if made is None:
            raise NotCovered(f"the op {type(node.op).__name__} has no rule")
        if not all(isinstance(d, int) for d in node.shape):
            raise NotCovered("sizes are symbols")
        if np.prod(node.shape, dtype=int) > MOST_ELEMENTS:
            raise NotCovered(f"an array of more than {MOST_ELEMENTS} elements")
        array = made(node.op, node, [known[a] for a in node.args], terms)
        if array.shape != node.shape:
            raise Refused(f"the rule of {type(node.op).__name__} gives the shape {array.shape}")
        known[node] = array
    return [known[node] for node in outputs]


def filled(shape: tuple[Any, ...], element: Callable[..., Any]) -> Array:
    """The array of a shape with an element for each index."""
    made = np.empty(shape, dtype=object)
    for index in np.ndindex(shape):
        made[index] = element(*index)
    return made


def elementwise(node: Node, args: Sequence[Array], function: Callable[..., Term]) -> Array:
    """A function of the elements of arrays of the node's shape; scalars are repeated."""
    spread = [np.broadcast_to(a, node.shape) for a in args]
    return filled(node.shape, lambda *index: function(*[a[index] for a in spread]))


# ---- sources --------------------------------------------------------------------------------------


@rule(Input)
def input_rule(op: Input, node: Node, args: list[Array], terms: Terms) -> Array:
    """A variable for each element, named by the input's node and the element's position."""
    return filled(node.shape, lambda *index: terms.variable((node, index)))


def exact(value: Any, terms: Terms) -> Term:
    """A number as a term: floats are their exact binary values."""
    if value is sympy.pi:
        return terms.call("pi")
    if value is sympy.E:
        return terms.call("exp", terms.term(1))
    if isinstance(value, sympy.Number) and value.is_finite:
        rational: Any = sympy.Rational(value)  # type: ignore[call-overload]
        return terms.term(Fraction(int(rational.p), int(rational.q)))
    if isinstance(value, (bool, int, Fraction, np.bool_, np.integer)):
        return terms.term(Fraction(int(value)) if not isinstance(value, Fraction) else value)
    if isinstance(value, (float, np.floating)) and np.isfinite(value):
        return terms.term(Fraction(float(value)))
    raise NotCovered(f"the constant {value} has no rule")


@rule(Constant)
def constant_rule(op: Constant, node: Node, args: list[Array], terms: Terms) -> Array:
    return filled((), lambda: exact(op.value, terms))


@rule(ArrayConstant)
def array_constant_rule(op: ArrayConstant, node: Node, args: list[Array], terms: Terms) -> Array:
    return filled(node.shape, lambda *index: exact(op.array[index], terms))


@rule(Iota)
def iota_rule(op: Iota, node: Node, args: list[Array], terms: Terms) -> Array:
    """0, 1, 2, ..."""
    return filled(node.shape, terms.term)


@rule(Eye)
def eye_rule(op: Eye, node: Node, args: list[Array], terms: Terms) -> Array:
    return filled(node.shape, lambda i, j: terms.term(int(i == j)))


# ---- elementwise ----------------------------------------------------------------------------------


@rule(Add)
def add_rule(op: Add, node: Node, args: list[Array], terms: Terms) -> Array:
    return elementwise(
        node, args, lambda *x: terms.sum([a if s == 1 else a * s for s, a in zip(op.signs, x, strict=True)])
    )


@rule(Mul)
def mul_rule(op: Mul, node: Node, args: list[Array], terms: Terms) -> Array:
    return elementwise(
        node, args, lambda *x: terms.product([a**p for p, a in zip(op.powers, x, strict=True)])
    )


@rule(Pow)
def pow_rule(op: Pow, node: Node, args: list[Array], terms: Terms) -> Array:
    def power(base: Term, exponent: Term) -> Term:
        number = exponent.number
        return terms.call("pow", base, exponent) if number is None else base**number

    return elementwise(node, args, power)


@rule(Apply)
def apply_rule(op: Apply, node: Node, args: list[Array], terms: Terms) -> Array:
    """A function by its name in the table; any other function is only itself."""
    name = HEADS.get(op.head)

    def of(*x: Term) -> Term:
        if name is None:
            return terms.call(op.head, *x)
        if name == "log" and len(x) == 2:
            return terms.call("log", x[0]) / terms.call("log", x[1])
        if name == "Heaviside" and len(x) == 2:  # the value at 0 is no open set's
            x = x[:1]
        if name in ("max", "min"):
            best = x[0]
            for other in x[1:]:
                best = terms.call(name, best, other)
            return best
        return ALWAYS[name](*x) if name in ALWAYS else terms.call(name, *x)

    return elementwise(node, args, of)


def compared(relation: str, a: Term, b: Term) -> Term:
    """[a relation b] as 0 or 1."""
    terms = a.table
    if a.number is not None and b.number is not None:
        truth = {"<": a.number < b.number, "<=": a.number <= b.number, "==": a.number == b.number}
        return terms.term(int(truth[relation] if relation != "!=" else not truth["=="]))
    if relation == "!=":
        return 1 - terms.call("equal", a, b)
    return terms.call({"<": "less", "<=": "at most", "==": "equal"}[relation], a, b)


@rule(Compare)
def compare_rule(op: Compare, node: Node, args: list[Array], terms: Terms) -> Array:
    return elementwise(node, args, lambda a, b: compared(op.relation, a, b))


@rule(Logic)
def logic_rule(op: Logic, node: Node, args: list[Array], terms: Terms) -> Array:
    """Of truth values 0 and 1: and is ab, or is 1 − (1 − a)(1 − b), not is 1 − a, xor is a + b − 2ab."""

    def xor(*x: Term) -> Term:
        total = x[0]
        for other in x[1:]:
            total = total + other - 2 * total * other
        return total

    of: Callable[..., Term] = {
        "and": lambda *x: terms.product(x),
        "or": lambda *x: 1 - terms.product([1 - a for a in x]),
        "not": lambda x: 1 - x,
        "xor": xor,
    }[op.kind]
    return elementwise(node, args, of)


@rule(Select)
def select_rule(op: Select, node: Node, args: list[Array], terms: Terms) -> Array:
    return elementwise(node, args, terms.select)


# ---- moved elements -------------------------------------------------------------------------------


@rule(Broadcast)
def broadcast_rule(op: Broadcast, node: Node, args: list[Array], terms: Terms) -> Array:
    """Axis k of the argument becomes axis ``op.axes[k]``; along the others it is repeated."""
    dims = [1] * len(node.shape)
    for axis, dim in zip(op.axes, args[0].shape, strict=True):
        dims[axis] = dim
    return np.broadcast_to(args[0].reshape(dims), node.shape)


@rule(Reshape)
def reshape_rule(op: Reshape, node: Node, args: list[Array], terms: Terms) -> Array:
    return args[0].reshape(node.shape)


def positions(start: Sequence[int], count: Sequence[int], step: Sequence[int]) -> Any:
    """The grid of positions start, start + step, ... along each axis."""
    return np.ix_(*[[a + k * s for k in range(n)] for a, n, s in zip(start, count, step, strict=True)])


@rule(Slice)
def slice_rule(op: Slice, node: Node, args: list[Array], terms: Terms) -> Array:
    return np.asarray(args[0][positions(op.start, op.count, op.step)], dtype=object)


@rule(Pad)
def pad_rule(op: Pad, node: Node, args: list[Array], terms: Terms) -> Array:
    """The argument at these positions of an array of zeros."""
    made = filled(node.shape, lambda *index: terms.term(0))
    made[positions(op.start, args[0].shape, op.step)] = args[0]
    return made


@rule(Concatenate)
def concatenate_rule(op: Concatenate, node: Node, args: list[Array], terms: Terms) -> Array:
    return np.concatenate(args, axis=op.axis)


@rule(Stack)
def stack_rule(op: Stack, node: Node, args: list[Array], terms: Terms) -> Array:
    return np.stack(args, axis=op.axis)


def whole(index: Term, size: int) -> int:
    """A known index below a size."""
    number = index.number
    if number is None or number.denominator != 1 or not 0 <= number < size:
        raise NotCovered("an index is no known position")
    return int(number)


@rule(Gather)
def gather_rule(op: Gather, node: Node, args: list[Array], terms: Terms) -> Array:
    table, indices = args
    rank = indices.ndim
    rows = filled(indices.shape, lambda *at: whole(indices[at], table.shape[0]))
    return filled(node.shape, lambda *index: table[(rows[index[:rank]], *index[rank:])])


@rule(ScatterAdd)
def scatter_add_rule(op: ScatterAdd, node: Node, args: list[Array], terms: Terms) -> Array:
    indices, updates = args
    made = filled(node.shape, lambda *index: terms.term(0))
    for at in np.ndindex(updates.shape):
        row = whole(indices[at[: indices.ndim]], op.size)
        place = (row, *at[indices.ndim :])
        made[place] = made[place] + updates[at]
    return made


# ---- sums and products ----------------------------------------------------------------------------


@rule(Einsum)
def einsum_rule(op: Einsum, node: Node, args: list[Array], terms: Terms) -> Array:
    """Σ over the labels that are not in the output of the product of the arguments."""
    if len(set(op.output)) != len(op.output):
        raise NotCovered("a diagonal is written")
    sizes = {
        k: d for labels, a in zip(op.inputs, args, strict=True) for k, d in zip(labels, a.shape, strict=True)
    }
    summed = [k for k in sizes if k not in op.output]
    inner = list(np.ndindex(*[sizes[k] for k in summed]))
    if len(inner) * max(int(np.prod(node.shape, dtype=int)), 1) > 8 * MOST_ELEMENTS:
        raise NotCovered("a contraction of too many products")

    def element(*index: int) -> Term:
        at = dict(zip(op.output, index, strict=True))
        parts = []
        for position in inner:
            at.update(zip(summed, position, strict=True))
            parts.append(
                terms.product(
                    a[tuple(at[k] for k in labels)] for labels, a in zip(op.inputs, args, strict=True)
                )
            )
        return terms.sum(parts)

    return filled(node.shape, element)


def along(array: Array, axes: Sequence[int], reduce: Callable[[list[Term]], Term]) -> Array:
    """All elements along some axes combined; these axes have length 1 afterwards."""
    shape = tuple(1 if k in axes else d for k, d in enumerate(array.shape))

    def element(*index: int) -> Term:
        lines = tuple(slice(None) if k in axes else i for k, i in enumerate(index))
        return reduce(list(array[lines].ravel()))

    return filled(shape, element)


@rule(Extreme)
def extreme_rule(op: Extreme, node: Node, args: list[Array], terms: Terms) -> Array:
    def best(parts: list[Term]) -> Term:
        found = parts[0]
        for part in parts[1:]:
            found = terms.call(op.kind, found, part)
        return found

    return along(args[0], op.axes, best).reshape(node.shape)


@rule(Product)
def product_rule(op: Product, node: Node, args: list[Array], terms: Terms) -> Array:
    return along(args[0], [args[0].ndim - 1], terms.product).reshape(node.shape)


@rule(Softmax, LogSoftmax, LogSumExp)
def softmax_rule(op: Any, node: Node, args: list[Array], terms: Terms) -> Array:
    """exp(x)/Σ exp(x), its logarithm, and log Σ exp(x)."""
    (x,) = args
    powers = filled(x.shape, lambda *index: terms.call("exp", x[index]))
    total = along(powers, op.axes, terms.sum)
    if isinstance(op, Softmax):
        return powers / total
    logarithm = filled(total.shape, lambda *index: terms.call("log", total[index]))
    return logarithm.reshape(node.shape) if isinstance(op, LogSumExp) else x - logarithm


@rule(SoftmaxTangent)
def softmax_tangent_rule(op: SoftmaxTangent, node: Node, args: list[Array], terms: Terms) -> Array:
    """p (t − Σ p t)."""
    p, t = args
    return np.asarray(p * (t - along(p * t, op.axes, terms.sum)), dtype=object)


@rule(Scan)
def scan_rule(op: Scan, node: Node, args: list[Array], terms: Terms) -> Array:
    """All states c_1, ..., c_T of c_t = body(c_{t−1}, x_t..., constants...)."""
    state, slices, constants = args[0], args[1 : 1 + op.slices], args[1 + op.slices :]
    states = []
    for t in range(node.shape[0]):  # type: ignore[arg-type]
        given = [state, *[x[t] for x in slices], *constants]
        inner = {a: np.asarray(v, dtype=object) for a, v in zip(op.body.input_nodes, given, strict=True)}
        (state,) = write_out(op.body.output_nodes, inner, terms)
        states.append(state)
    return np.stack(states)


# ---- small matrices -------------------------------------------------------------------------------


def stacked(node: Node, args: Sequence[Array], function: Callable[..., Any]) -> Array:
    """A function of matrices, for each of a stack of them."""
    lead = args[0].shape[:-2]
    if args[0].shape[-1] > MOST_ROWS:
        raise NotCovered(f"a matrix of more than {MOST_ROWS} rows is not written out")
    made = np.empty(node.shape, dtype=object)
    for index in np.ndindex(lead):
        made[index] = function(*[a[index] for a in args])
    return made


def determinant(a: Array) -> Term:
    """Σ over permutations of sign times product (Leibniz)."""
    terms, n, parts = a[0, 0].table, len(a), []
    for order in permutations(range(n)):
        sign = (-1) ** sum(order[i] > order[j] for j in range(n) for i in range(j))
        parts.append(terms.product([sign, *[a[i, j] for i, j in enumerate(order)]]))
    found: Term = terms.sum(parts)
    return found


def solution(a: Array, b: Array) -> Array:
    """A⁻¹ B by Cramer's rule: x_i = det(A with column i replaced by b)/det A."""

    def element(i: int, k: int) -> Term:
        replaced = a.copy()
        replaced[:, i] = b[:, k]
        return determinant(replaced) / determinant(a)

    return filled(b.shape, element)


def triangle(a: Array, lower: bool, diagonal: Any = 1) -> Array:
    """One triangle of a matrix, with its diagonal times a number."""
    scale = Fraction(diagonal)
    return filled(
        a.shape,
        lambda i, j: a[i, j] * scale if i == j else a[i, j] if (i > j) == lower else a[i, j].table.term(0),
    )


def cholesky(a: Array) -> Array:
    """L_ij = (A_ij − Σ_k L_ik L_jk)/L_jj and L_jj = √(A_jj − Σ_k L_jk²), for k < j."""
    made = filled(a.shape, lambda i, j: a[0, 0].table.term(0))
    for j in range(len(a)):
        for i in range(j, len(a)):
            rest = a[i, j] - a[0, 0].table.sum(made[i, k] * made[j, k] for k in range(j))
            made[i, j] = rest ** Fraction(1, 2) if i == j else rest / made[j, j]
    return made


@rule(Solve)
def solve_rule(op: Solve, node: Node, args: list[Array], terms: Terms) -> Array:
    return stacked(node, args, solution)


@rule(TriangularSolve)
def triangular_solve_rule(op: TriangularSolve, node: Node, args: list[Array], terms: Terms) -> Array:
    return stacked(node, args, lambda a, b: solution(triangle(a, op.lower), b))


@rule(Triangle)
def triangle_rule(op: Triangle, node: Node, args: list[Array], terms: Terms) -> Array:
    return stacked(node, args, lambda a: triangle(a, True, op.diagonal))


@rule(Cholesky)
def cholesky_rule(op: Cholesky, node: Node, args: list[Array], terms: Terms) -> Array:
    return stacked(node, args, cholesky)


@rule(Determinant)
def determinant_rule(op: Determinant, node: Node, args: list[Array], terms: Terms) -> Array:
    return stacked(node, args, determinant)


@rule(LogDeterminant)
def log_determinant_rule(op: LogDeterminant, node: Node, args: list[Array], terms: Terms) -> Array:
    return stacked(node, args, lambda a: terms.call("log", determinant(a)))
