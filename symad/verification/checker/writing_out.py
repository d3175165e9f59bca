"""Graphs written out: each op of arrays as formulas for the elements of its value.

An array is a NumPy array of terms. There is one short rule for each op, the definition of that op: a function
of the op, the shape of the value, and the arrays of the arguments. Sizes are numbers, and a graph with an op
that has no rule is not covered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
import sympy

from symad.core.graph import Node, Op, topological
from symad.ops.arrays import contraction, gathering, reduction, shaping, sources, stacking
from symad.ops.elementwise import apply, arithmetic, powers, selection
from symad.ops.fused import softmax
from symad.ops.linalg import solve_det
from symad.ops.loops import scan
from symad.verification.checker.functions import ALWAYS, HEADS
from symad.verification.checker.terms import Refused, Term, Terms

Array: TypeAlias = "np.ndarray[Any, Any]"
Rule: TypeAlias = "Callable[[Any, tuple[Any, ...], list[Array], Terms], Array]"

MOST_ELEMENTS, MOST_ROWS = 4096, 3
"""Larger arrays are not written out, and larger matrices are not inverted."""


class NotCovered(Refused):
    """A graph has an op or a size for which there is no rule."""


def write_out(outputs: Sequence[Node], known: dict[Node, Array], terms: Terms) -> list[Array]:
    """The elements of nodes as terms; ``known`` has those of some nodes, and gets those of all others."""
    for node in topological(outputs):
        if node in known:
            continue
        rule = RULES.get(type(node.op))
        if rule is None:
            raise NotCovered(f"the op {type(node.op).__name__} has no rule")
        if not all(isinstance(d, int) for d in node.shape) or np.prod(node.shape, dtype=int) > MOST_ELEMENTS:
            raise NotCovered(f"sizes are symbols, or an array has more than {MOST_ELEMENTS} elements")
        array = np.asarray(rule(node.op, node.shape, [known[a] for a in node.args], terms), dtype=object)
        if array.shape != node.shape:
            raise Refused(f"the rule of {type(node.op).__name__} gives the shape {array.shape}")
        known[node] = array
    return [known[node] for node in outputs]


def filled(shape: Sequence[Any], element: Callable[..., Any]) -> Array:
    """The array of a shape with an element for each index."""
    made = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        made[index] = element(*index)
    return made


def elementwise(shape: Sequence[Any], args: Sequence[Array], function: Callable[..., Term]) -> Array:
    """A function of the elements of arrays; scalars are repeated."""
    spread = [a if a.shape == shape else np.broadcast_to(a, tuple(shape)) for a in args]
    return filled(shape, lambda *index: function(*[a[index] for a in spread]))


def exact(value: Any, terms: Terms) -> Term:
    """A number as a term: floats are their exact binary values."""
    if value is sympy.pi or value is sympy.E:
        return terms.call("pi") if value is sympy.pi else terms.call("exp", 1)
    if isinstance(value, sympy.Number) and value.is_finite:
        rational: Any = sympy.Rational(value)
        return terms.term(Fraction(int(rational.p), int(rational.q)))
    if isinstance(value, (bool, int, Fraction, np.bool_, np.integer)):
        return terms.term(value if isinstance(value, Fraction) else int(value))
    if isinstance(value, (float, np.floating)) and np.isfinite(value):
        return terms.term(Fraction(float(value)))
    raise NotCovered(f"the constant {value} has no rule")


# ---- elementwise ----------------------------------------------------------------------------------


def applied(head: Any, x: Sequence[Term], terms: Terms) -> Term:
    """A function by its name in the table; any other function is only itself."""
    name = HEADS.get(head)
    if name is None:
        return terms.call(head, *x)
    if name == "log" and len(x) == 2:
        return terms.call("log", x[0]) / terms.call("log", x[1])
    if name == "Heaviside":  # the value at 0 is no open set's
        x = x[:1]
    if name in ("max", "min"):
        return extreme(name, x)
    return ALWAYS[name](*x) if name in ALWAYS else terms.call(name, *x)


def extreme(name: str, x: Sequence[Term]) -> Term:
    """The largest or smallest of some terms."""
    return reduce(lambda a, b: a.table.call(name, a, b), x)


def compared(relation: str, a: Term, b: Term) -> Term:
    """[a relation b] as 0 or 1."""
    terms, p, q = a.table, a.number, b.number
    if relation == "!=":
        return 1 - compared("==", a, b)
    if p is not None and q is not None:
        return terms.term(int({"<": p < q, "<=": p <= q, "==": p == q}[relation]))
    return terms.call({"<": "less", "<=": "at most", "==": "equal"}[relation], a, b)


LOGIC: dict[str, Callable[..., Term]] = {
    "and": lambda *x: x[0].table.product(x),
    "or": lambda *x: 1 - x[0].table.product([1 - a for a in x]),
    "not": lambda x: 1 - x,
    "xor": lambda *x: reduce(lambda a, b: a + b - 2 * a * b, x),
}
"""Of truth values 0 and 1."""


# ---- moved elements, sums and products ------------------------------------------------------------


def repeated(op: shaping.Broadcast, shape: tuple[Any, ...], x: Array) -> Array:
    """Axis k of the argument becomes axis ``op.axes[k]``; along the others it is repeated."""
    dims = [1] * len(shape)
    for axis, dim in zip(op.axes, x.shape, strict=True):
        dims[axis] = dim
    return np.broadcast_to(x.reshape(dims), shape)


def grid(start: Sequence[int], count: Sequence[int], step: Sequence[int]) -> Any:
    """The positions start, start + step, ... along each axis."""
    return np.ix_(*[[a + k * s for k in range(n)] for a, n, s in zip(start, count, step, strict=True)])


def padded(op: shaping.Pad, shape: tuple[Any, ...], x: Array, terms: Terms) -> Array:
    """The argument at some positions of an array of zeros."""
    made = filled(shape, lambda *index: terms.term(0))
    made[grid(op.start, x.shape, op.step)] = x
    return made


def rows(indices: Array, size: int) -> Array:
    """Known indices below a size."""

    def whole(*at: int) -> int:
        number = indices[at].number
        if number is None or number.denominator != 1 or not 0 <= number < size:
            raise NotCovered("an index is no known position")
        return int(number)

    return filled(indices.shape, whole)


def scattered(op: gathering.ScatterAdd, shape: tuple[Any, ...], x: list[Array], terms: Terms) -> Array:
    """Rows of updates added to zeros at some indices."""
    made, at = filled(shape, lambda *index: terms.term(0)), rows(x[0], op.size)
    for index in np.ndindex(*x[1].shape):
        place = (at[index[: at.ndim]], *index[at.ndim :])
        made[place] = made[place] + x[1][index]
    return made


def contracted(op: contraction.Einsum, shape: tuple[Any, ...], args: list[Array], terms: Terms) -> Array:
    """Σ over the labels that are not in the output of the product of the arguments."""
    sizes = {
        k: d for labels, a in zip(op.inputs, args, strict=True) for k, d in zip(labels, a.shape, strict=True)
    }
    summed = [k for k in sizes if k not in op.output]
    inner = list(np.ndindex(*[sizes[k] for k in summed]))
    if len(set(op.output)) != len(op.output) or len(inner) * int(np.prod(shape)) > 8 * MOST_ELEMENTS:
        raise NotCovered("a contraction writes a diagonal, or has too many products")

    def element(*index: int) -> Term:
        at, parts = dict(zip(op.output, index, strict=True)), []
        for position in inner:
            at.update(zip(summed, position, strict=True))
            factors = [a[tuple(at[k] for k in labels)] for labels, a in zip(op.inputs, args, strict=True)]
            parts.append(terms.product(factors))
        return terms.sum(parts)

    return filled(shape, element)


def along(array: Array, axes: Sequence[int], reduce: Callable[[list[Term]], Term]) -> Array:
    """All elements along some axes combined; these axes have length 1 afterwards."""

    def element(*index: int) -> Term:
        line = tuple(slice(None) if k in axes else i for k, i in enumerate(index))
        return reduce(list(array[line].ravel()))

    return filled([1 if k in axes else d for k, d in enumerate(array.shape)], element)


def exponentials(op: Any, shape: tuple[Any, ...], x: list[Array], terms: Terms) -> Array:
    """exp(x)/Σ exp(x), its logarithm, and log Σ exp(x)."""
    powers = elementwise(x[0].shape, x, lambda a: terms.call("exp", a))
    total = along(powers, op.axes, terms.sum)
    if isinstance(op, softmax.Softmax):
        return powers / total
    logarithm = elementwise(total.shape, [total], lambda a: terms.call("log", a))
    return logarithm.reshape(shape) if isinstance(op, softmax.LogSumExp) else x[0] - logarithm


def scanned(op: scan.Scan, shape: tuple[Any, ...], args: list[Array], terms: Terms) -> Array:
    """All states c_1, ..., c_T of c_t = body(c_{t−1}, x_t..., constants...)."""
    state, slices, constants, states = args[0], args[1 : 1 + op.slices], args[1 + op.slices :], []
    for t in range(shape[0]):
        given = [state, *[np.asarray(x[t], dtype=object) for x in slices], *constants]
        (state,) = write_out(op.body.output_nodes, dict(zip(op.body.input_nodes, given, strict=True)), terms)
        states.append(state)
    return np.stack(states)


# ---- small matrices -------------------------------------------------------------------------------


def stacked(shape: tuple[Any, ...], args: Sequence[Array], function: Callable[..., Any]) -> Array:
    """A function of matrices, for each of a stack of them."""
    if args[0].shape[-1] > MOST_ROWS:
        raise NotCovered(f"a matrix of more than {MOST_ROWS} rows is not written out")
    made = np.empty(shape, dtype=object)
    for index in np.ndindex(*args[0].shape[:-2]):
        made[index] = function(*[a[index] for a in args])
    return made


def determinant(a: Array) -> Term:
    """Σ over permutations of sign times product (Leibniz)."""
    parts = []
    for order in permutations(range(len(a))):
        sign = (-1) ** sum(order[i] > order[j] for j in range(len(a)) for i in range(j))
        parts.append(a[0, 0].table.product([sign, *[a[i, j] for i, j in enumerate(order)]]))
    found: Term = a[0, 0].table.sum(parts)
    return found


def solution(a: Array, b: Array) -> Array:
    """A⁻¹ B by Cramer's rule: x_i = det(A with column i replaced by b)/det A."""

    def element(i: int, k: int) -> Term:
        replaced = a.copy()
        replaced[:, i] = b[:, k]
        return determinant(replaced) / determinant(a)

    return filled(b.shape, element)


RULES: dict[type[Op], Rule] = {
    sources.Input: lambda op, shape, x, t: filled(shape, lambda *k: t.variable((op, k))),
    sources.Constant: lambda op, shape, x, t: filled((), lambda: exact(op.value, t)),
    sources.Dimension: lambda op, shape, x, t: filled((), lambda: exact(op.expression, t)),
    sources.ArrayConstant: lambda op, shape, x, t: filled(shape, lambda *k: exact(op.array[k], t)),
    sources.Iota: lambda op, shape, x, t: filled(shape, t.term),
    sources.Eye: lambda op, shape, x, t: filled(shape, lambda i, j: t.term(int(i == j))),
    arithmetic.Add: lambda op, shape, x, t: elementwise(
        shape, x, lambda *a: t.sum([b if s == 1 else -b for s, b in zip(op.signs, a, strict=True)])
    ),
    arithmetic.Mul: lambda op, shape, x, t: elementwise(
        shape, x, lambda *a: t.product([b**p for p, b in zip(op.powers, a, strict=True)])
    ),
    powers.Pow: lambda op, shape, x, t: elementwise(
        shape, x, lambda a, b: t.call("pow", a, b) if b.number is None else a**b.number
    ),
    apply.Apply: lambda op, shape, x, t: elementwise(shape, x, lambda *a: applied(op.head, a, t)),
    selection.Compare: lambda op, shape, x, t: elementwise(
        shape, x, lambda a, b: compared(op.relation, a, b)
    ),
    selection.Logic: lambda op, shape, x, t: elementwise(shape, x, LOGIC[op.kind]),
    selection.Select: lambda op, shape, x, t: elementwise(shape, x, t.select),
    shaping.Broadcast: lambda op, shape, x, t: repeated(op, shape, x[0]),
    shaping.Reshape: lambda op, shape, x, t: x[0].reshape(shape),
    shaping.Slice: lambda op, shape, x, t: x[0][grid(op.start, op.count, op.step)] if shape else x[0],
    shaping.Pad: lambda op, shape, x, t: padded(op, shape, x[0], t),
    stacking.Concatenate: lambda op, shape, x, t: np.concatenate(x, axis=op.axis),
    stacking.Stack: lambda op, shape, x, t: np.stack(x, axis=op.axis),
    gathering.Gather: lambda op, shape, x, t: x[0][rows(x[1], x[0].shape[0]).astype(int)],
    gathering.ScatterAdd: scattered,
    contraction.Einsum: contracted,
    reduction.Extreme: lambda op, shape, x, t: along(x[0], op.axes, lambda a: extreme(op.kind, a)).reshape(
        shape
    ),
    reduction.Product: lambda op, shape, x, t: along(x[0], [x[0].ndim - 1], t.product).reshape(shape),
    **dict.fromkeys((softmax.Softmax, softmax.LogSoftmax, softmax.LogSumExp), exponentials),
    softmax.SoftmaxTangent: lambda op, shape, x, t: x[0] * (x[1] - along(x[0] * x[1], op.axes, t.sum)),
    scan.Scan: scanned,
    solve_det.Solve: lambda op, shape, x, t: stacked(shape, x, solution),
    solve_det.Determinant: lambda op, shape, x, t: stacked(shape, x, determinant),
    solve_det.LogDeterminant: lambda op, shape, x, t: stacked(
        shape, x, lambda a: t.call("log", determinant(a))
    ),
}
"""What each op computes."""
