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
from math import prod
from typing import Any, TypeAlias

import numpy as np
import sympy

from symad.core.graph import Node, Op, topological
from symad.ops.arrays import contraction, gathering, reduction, shaping, sources, stacking
from symad.ops.elementwise import apply, arithmetic, powers, selection
from symad.ops.fused import softmax
from symad.ops.linalg import solve_det
from symad.ops.loops import scan
from symad.verification.checker.functions import ALWAYS, HEADS, INDICATORS
from symad.verification.checker.terms import Refused, Term, Terms

Array: TypeAlias = "np.ndarray[Any, Any]"
Shape: TypeAlias = "tuple[Any, ...]"
Rule: TypeAlias = "Callable[[Any, Shape, list[Array], Terms], Any]"

MOST_ELEMENTS, MOST_ROWS = 4096, 3
"""Larger arrays are not written out, and larger matrices are not inverted."""


def write_out(outputs: Sequence[Node], known: dict[Node, Array], terms: Terms) -> list[Array]:
    """The elements of nodes as terms; ``known`` has those of some nodes, and gets those of all others."""
    for node in topological(outputs):
        if node in known:
            continue
        name, shape = type(node.op).__name__, node.shape
        if type(node.op) not in RULES:
            raise Refused(f"the op {name} has no rule")
        if not all(isinstance(d, int) for d in shape) or prod(shape) > MOST_ELEMENTS:
            raise Refused(f"sizes are symbols, or an array has more than {MOST_ELEMENTS} elements")
        terms.spend(1 + prod(shape))
        made = RULES[type(node.op)](node.op, shape, [known[a] for a in node.args], terms)
        known[node] = array = np.asarray(made, dtype=object)
        if array.shape != shape:
            raise Refused(f"the rule of {name} gives the shape {array.shape}")
    return [known[node] for node in outputs]


def filled(shape: Sequence[Any], element: Callable[..., Any]) -> Array:
    """The array of a shape with an element for each index."""
    made = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        made[index] = element(*index)
    return made


def each(function: Callable[..., Term], *x: Array) -> Array:
    """A function of the elements of arrays; scalars are repeated."""
    shape = next((a.shape for a in x if a.shape), ())
    spread = [a if a.shape else np.broadcast_to(a, shape) for a in x]
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
    raise Refused(f"the constant {value} has no rule")


# ---- elementwise ----------------------------------------------------------------------------------


def applied(head: Any, x: Sequence[Term], terms: Terms) -> Term:
    """A function by its name in the table; any other function is only itself."""
    name = HEADS.get(head, head)
    if name == "log" and len(x) == 2:
        return terms.call("log", x[0]) / terms.call("log", x[1])
    if name in ("max", "min"):
        return extreme(name, x)
    if name == "Heaviside":  # the value at 0 is no open set's
        x = x[:1]
    return ALWAYS[name](*x) if name in ALWAYS else terms.call(name, *x)


def extreme(name: str, x: Sequence[Term]) -> Term:
    """The largest or smallest of some terms."""
    return reduce(lambda a, b: a.table.call(name, a, b), x)


def compared(relation: str, a: Term, b: Term) -> Term:
    """[a relation b] as 0 or 1."""
    if relation == "!=":
        return 1 - compared("==", a, b)
    if a.number is not None and b.number is not None:
        order = (a.number > b.number) - (a.number < b.number)
        return a.table.term(int(order in {"<": [-1], "<=": [-1, 0], "==": [0]}[relation]))
    return a.table.call({"<": "less", "<=": "at most", "==": "equal"}[relation], a, b)


def logic(kind: str, *x: Term) -> Term:
    """Of the truth values 0 and 1; other numbers would be true as well."""
    if not all(map(is_truth, x)):
        raise Refused(f"{kind} is of truth values")
    if kind == "xor":
        return reduce(lambda a, b: a + b - 2 * a * b, x)
    product = x[0].table.product(x if kind == "and" else [1 - a for a in x])
    return 1 - product if kind == "or" else product  # "not" has one argument


def is_truth(x: Term) -> bool:
    """Whether a term is 0 or 1 wherever it has a value: an indicator f, 1 − f, or a product of such terms."""
    todo = [x]
    while todo:
        t = todo.pop()
        if t.kind == "product" and all(a.number is None for a in t.args):
            todo += t.args
        elif t.kind == "sum" and len(t.args) == 2 and t.args[1].number == 1:
            *rest, last = t.args[0].args or t.args[:1]
            todo.append(t.table.product(rest) if last.number == -1 else t.args[0] * -1)
        elif t.number not in (0, 1) and not (t.kind == "call" and t.data in INDICATORS):
            return False
    return True


# ---- moved elements, sums and products ------------------------------------------------------------


def repeated(op: shaping.Broadcast, shape: Shape, x: list[Array], terms: Terms) -> Array:
    """Axis k of the argument becomes axis ``op.axes[k]``; along the others it is repeated."""
    dims = [1] * len(shape)
    for axis, dim in zip(op.axes, x[0].shape, strict=True):
        dims[axis] = dim
    return np.broadcast_to(x[0].reshape(dims), shape)


def grid(start: Sequence[int], count: Sequence[int], step: Sequence[int]) -> Any:
    """The positions start, start + step, ... along each axis."""
    lines = [[a + k * s for k in range(n)] for a, n, s in zip(start, count, step, strict=True)]
    if any(k < 0 for line in lines for k in line):
        raise Refused("a position is negative")
    return np.ix_(*[np.array(line, dtype=int) for line in lines]) if lines else ()


def padded(op: shaping.Pad, shape: Shape, x: list[Array], terms: Terms) -> Array:
    """The argument at some positions of an array of zeros."""
    made = filled(shape, lambda *index: terms.term(0))
    made[grid(op.start, x[0].shape, op.step)] = x[0]
    return made


def rows(indices: Array, size: int) -> Array:
    """Known indices below a size."""
    numbers = [-1 if t.number is None else t.number for t in indices.flat]
    if not all(0 <= n < size and n == int(n) for n in numbers):
        raise Refused("an index is no known position")
    return np.array(list(map(int, numbers)), dtype=int).reshape(indices.shape)


def scattered(op: gathering.ScatterAdd, shape: Shape, x: list[Array], terms: Terms) -> Array:
    """Rows of updates added to zeros at some indices."""
    made, at = filled(shape, lambda *index: terms.term(0)), rows(x[0], op.size)
    for index in np.ndindex(*x[1].shape):
        place = (at[index[: at.ndim]], *index[at.ndim :])
        made[place] = made[place] + x[1][index]
    return made


def contracted(op: contraction.Einsum, shape: Shape, x: list[Array], terms: Terms) -> Array:
    """Σ over the labels that are not in the output of the product of the arguments."""
    pairs = [
        (k, d) for labels, a in zip(op.inputs, x, strict=True) for k, d in zip(labels, a.shape, strict=True)
    ]
    sizes = dict(pairs)
    summed = [k for k in sizes if k not in op.output]
    if any(sizes[k] != d for k, d in pairs) or len(set(op.output)) != len(op.output):
        raise Refused("a contraction writes a diagonal, or joins axes of other sizes")

    def element(*index: int) -> Term:
        parts = []
        for inner in np.ndindex(*[sizes[k] for k in summed]):
            at = dict(zip([*op.output, *summed], [*index, *inner], strict=True))
            factors = [a[tuple(at[k] for k in labels)] for labels, a in zip(op.inputs, x, strict=True)]
            parts.append(terms.product(factors))
        return terms.sum(parts)

    return filled(shape, element)


def along(array: Array, axes: Sequence[int], combine: Callable[[list[Term]], Term]) -> Array:
    """All elements along some axes combined; these axes have length 1 afterwards."""

    def element(*index: int) -> Term:
        line = tuple(slice(None) if k in axes else i for k, i in enumerate(index))
        return combine(list(array[line].ravel()))

    return filled([1 if k in axes else d for k, d in enumerate(array.shape)], element)


def exponentials(op: Any, shape: Shape, x: list[Array], terms: Terms) -> Array:
    """exp(x)/Σ exp(x), its logarithm, and log Σ exp(x)."""
    powers = each(lambda a: terms.call("exp", a), *x)
    total = along(powers, op.axes, terms.sum)
    if isinstance(op, softmax.Softmax):
        return powers / total
    logarithm = each(lambda a: terms.call("log", a), total)
    return logarithm.reshape(shape) if isinstance(op, softmax.LogSumExp) else x[0] - logarithm


def scanned(op: scan.Scan, shape: Shape, x: list[Array], terms: Terms) -> Array:
    """All states c_1, ..., c_T of c_t = body(c_{t−1}, x_t..., constants...)."""
    state, slices, constants, states = x[0], x[1 : 1 + op.slices], x[1 + op.slices :], []
    for t in range(shape[0]):
        given = [state, *[np.asarray(a[t], dtype=object) for a in slices], *constants]
        (state,) = write_out(op.body.output_nodes, dict(zip(op.body.input_nodes, given, strict=True)), terms)
        states.append(state)
    return np.stack(states)


# ---- matrices -------------------------------------------------------------------------------------


def stacked(function: Callable[..., Any], most: int = MOST_ROWS) -> Rule:
    """A function of matrices, for each of a stack of them."""

    def rule(op: Any, shape: Shape, x: list[Array], terms: Terms) -> Array:
        if x[0].shape[-1] > most:
            raise Refused(f"a matrix of more than {most} rows is not written out")
        made = np.empty(shape, dtype=object)
        for index in np.ndindex(*x[0].shape[:-2]):
            made[index] = function(*[a[index] for a in x])
        return made

    return rule


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
    sources.Constant: lambda op, shape, x, t: exact(op.value, t),
    sources.Dimension: lambda op, shape, x, t: exact(op.expression, t),
    sources.ArrayConstant: lambda op, shape, x, t: filled(shape, lambda *k: exact(op.array[k], t)),
    sources.Iota: lambda op, shape, x, t: filled(shape, t.term),
    sources.Eye: lambda op, shape, x, t: filled(shape, lambda i, j: t.term(int(i == j))),
    arithmetic.Add: lambda op, shape, x, t: each(
        lambda *a: t.sum([b if s == 1 else -b for s, b in zip(op.signs, a, strict=True)]), *x
    ),
    arithmetic.Mul: lambda op, shape, x, t: each(
        lambda *a: t.product([b**p for p, b in zip(op.powers, a, strict=True)]), *x
    ),
    powers.Pow: lambda op, shape, x, t: each(
        lambda a, b: t.call("pow", a, b) if b.number is None else a**b.number, *x
    ),
    apply.Apply: lambda op, shape, x, t: each(lambda *a: applied(op.head, a, t), *x),
    selection.Compare: lambda op, shape, x, t: each(lambda a, b: compared(op.relation, a, b), *x),
    selection.Logic: lambda op, shape, x, t: each(lambda *a: logic(op.kind, *a), *x),
    selection.Select: lambda op, shape, x, t: each(t.select, *x),
    shaping.Broadcast: repeated,
    shaping.Reshape: lambda op, shape, x, t: x[0].reshape(shape),
    shaping.Slice: lambda op, shape, x, t: x[0][grid(op.start, op.count, op.step)],
    shaping.Pad: padded,
    stacking.Concatenate: lambda op, shape, x, t: np.concatenate(x, axis=op.axis),
    stacking.Stack: lambda op, shape, x, t: np.stack(x, axis=op.axis),
    gathering.Gather: lambda op, shape, x, t: x[0][rows(x[1], x[0].shape[0])],
    gathering.ScatterAdd: scattered,
    contraction.Einsum: contracted,
    reduction.Extreme: lambda op, shape, x, t: along(x[0], op.axes, lambda a: extreme(op.kind, a)).reshape(
        shape
    ),
    reduction.Product: lambda op, shape, x, t: along(x[0], [x[0].ndim - 1], t.product).reshape(shape),
    **dict.fromkeys((softmax.Softmax, softmax.LogSoftmax, softmax.LogSumExp), exponentials),
    softmax.SoftmaxTangent: lambda op, shape, x, t: x[0] * (x[1] - along(x[0] * x[1], op.axes, t.sum)),
    scan.Scan: scanned,
    solve_det.Solve: stacked(solution),
    solve_det.Determinant: stacked(determinant),
    solve_det.LogDeterminant: stacked(lambda a: a[0, 0].table.call("log", determinant(a))),
}
"""What each op computes."""
