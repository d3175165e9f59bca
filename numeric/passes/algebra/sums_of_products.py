"""Sums of products as contractions: Σ x y is one product by BLAS, without an array for x y.

- Σ x² and Σ x y become contractions of the factors; contractions and broadcasts among the factors join them.
- Numbers and signs are moved out of a sum, into one factor.
- A contraction of many operands is computed two at a time, in the cheapest order.

The value of a sum changes by rounding only. Numbers that are very small or large stay where they are: in
Σ (c x)², c² can be 0 where (c x)² is not. Divisors stay, too: (x/d)/d is not x/d², where d² can overflow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import TypeGuard

import numpy as np

from symad.core.dims import Shape
from symad.core.graph import Graph, Node, op_of, rebuild
from symad.core.questions import Nodes
from symad.higher_order.scan import LoopOp
from symad.numbers.number_domains import as_float
from symad.numeric.passes.bodies import with_body
from symad.numeric.passes.rewriting import with_results
from symad.ops.basic.arithmetic import Add, Mul, mul, signed_product, signed_sum
from symad.ops.basic.contraction import Einsum, contract
from symad.ops.basic.sources import constant, constant_value, is_exact
from symad.ops.elementwise.powers import Pow

Number = int | Fraction

TYPICAL = 100
"""The size assumed for a symbolic dimension when orders are compared."""


MAX_INTEGER = 10**7
"""Fractions with a larger numerator or denominator are written as floats, and are no factors to collect.

Origin: numerators and denominators are then exact in single precision, which has all integers up to 2²⁴.
"""

MIN_FACTOR, MAX_FACTOR = 1e-10, 1e10
"""Numbers are moved and multiplied while their magnitude is between these; others stay where they are.

Origin: values within 1e±28 stay in the range of single precision when such a number moves.
"""

MAX_BITS = 100
"""Exact fractions up to 2¹⁰⁰, 1.3e30, are moved, too: factorials of series become one number.

Origin: the range of single precision, in which their product with values up to 1e8 is a number.
"""


def contract_sums(graph: Graph) -> Graph:
    """The graph with every rule of this file applied."""
    return with_results(graph, _contracted(graph))


def _contracted(graph: Graph) -> Nodes:
    users = Counter(a for node in graph.nodes for a in node.args)  # u in u·u is computed once, then squared
    users.update(graph.output_nodes)
    alone = {node for node in graph.nodes if users[node] == 1}

    bodies: dict[Graph, Graph] = {}

    def better(node: Node, args: Nodes) -> Node | None:
        single = [a in alone for a in node.args]
        if isinstance(node.op, Mul):
            return _product(node, args, single)
        if isinstance(node.op, Einsum):
            return _contraction(node, args, alone)
        if isinstance(node.op, LoopOp):
            body = node.op.body
            if body not in bodies:
                bodies[body] = Graph(body.input_nodes, _contracted(body))
            return Node.of(with_body(node.op, bodies[body], node.op.slices), args)
        return None

    return rebuild(graph, {}, better)


def split(node: Node) -> tuple[Number, Node | None]:
    """The number in a node, and the remaining factor; None as the factor means 1."""
    value = constant_value(node)
    if _movable(value):
        return Fraction(value), None
    if isinstance(node.op, Add) and len(node.args) == 1:
        inner, base = split(node.args[0])
        return inner * node.op.signs[0], base
    if not isinstance(node.op, Mul):
        return 1, node
    factor: Number = 1
    rest: list[tuple[int, Node]] = []
    for power, arg in zip(node.op.powers, node.args, strict=True):
        value = constant_value(arg)
        if value and _movable(value):
            factor *= _raised(value, power)
        else:
            rest.append((power, arg))
    if factor == 1 or not _moderate(factor):
        return 1, node
    return factor, signed_product(rest) if rest else None


def _raised(number: Number, power: int) -> Fraction:
    """A number to the power ±1, as a fraction."""
    return Fraction(number) if power == 1 else Fraction(1) / Fraction(number)


def _movable(value: float | None) -> bool:
    """Whether a constant is a number that is moved and multiplied."""
    return _is_number(value) and (not value or _moderate(value))


def _extreme(node: Node) -> bool:
    """Whether a node is a number that stays where it is."""
    value = constant_value(node)
    return _is_number(value) and bool(value) and not _moderate(value)


def _is_number(value: float | None) -> TypeGuard[Number | float]:
    return is_exact(value) or isinstance(value, float)


def _moderate(number: Number | float) -> bool:
    """Whether a number is between the limits; a fraction by its bits, as fractions are compared slowly."""
    if isinstance(number, float):
        return MIN_FACTOR <= abs(number) <= MAX_FACTOR
    return abs(number.numerator.bit_length() - number.denominator.bit_length()) <= MAX_BITS


def scaled(factor: Number, node: Node) -> Node:
    """factor · node."""
    return node if factor == 1 else mul(_number(factor), node)


def _number(factor: Number) -> Node:
    """The constant; a long fraction becomes its nearest float."""
    long = max(abs(factor.numerator), factor.denominator) > MAX_INTEGER
    return constant(as_float(factor) if long else factor)


def _product(node: Node, args: Nodes, single: Sequence[bool]) -> Node:
    """A product with its numbers combined, and with the factors of products that nothing else reads."""
    op = op_of(node, Mul)
    factor: Number = 1
    rest: list[tuple[int, Node]] = []
    divisors = op.powers.count(-1)
    as_written = any(map(_extreme, args))  # 1e-25·(x·y) is not 1e-25·x·y where x·y overflows
    for power, arg, alone in zip(op.powers, args, single, strict=True):
        number, base = split(arg)
        if number == 0:
            return node.over(args)
        if number != 1:
            joined = factor * _raised(number, power)
            if not _moderate(joined):
                rest.append((power, arg))
                continue
            factor = joined
        if base is None:
            continue
        inner = base.op
        if alone and not as_written and isinstance(inner, Mul) and base.shape == node.shape:
            flat = [(power * p, a) for p, a in zip(inner.powers, base.args, strict=True)]
            more = sum(p == -1 for p, _ in flat) - (power == -1)
            if (more <= 0 or divisors + more <= 1) and not any(_extreme(a) for a in base.args):
                rest += flat
                divisors += more
                continue
        rest.append((power, base))
    if not rest:
        return _number(factor)
    if node.shape and not as_written:
        return _small_side(factor, rest)
    return scaled(factor, signed_product(rest))


def _small_side(factor: Number, rest: list[tuple[int, Node]]) -> Node:
    """A scaled product of arrays, with all numbers moved into the smallest array that can take them."""
    scalars = [(p, a) for p, a in rest if not a.shape]
    arrays = [(p, a) for p, a in rest if a.shape]
    if scalars:
        number = scaled(factor, signed_product(scalars))
    elif factor != 1:
        number = _number(factor)
    else:
        return signed_product(arrays)
    if len(arrays) == 1 and arrays[0][0] == 1:
        (only,) = (a for _, a in arrays)
        if isinstance(only.op, Einsum) and len(only.args) > 1:
            sizes = [_size(a.shape) for a in only.args]
            k = sizes.index(min(sizes))
            if only.args[k].shape and 4 * sizes[k] <= _size(only.shape):
                args = list(only.args)
                args[k] = signed_product([(1, number), (1, args[k])])
                return contract(only.op.inputs, only.op.output, *args)
    return signed_product([(1, number), *arrays])


def _contraction(node: Node, args: Nodes, alone: set[Node]) -> Node:
    """A contraction with its numbers, its nested sums of products and its order treated by the rules."""
    op = op_of(node, Einsum)
    single = [a in alone for a in node.args]
    labels, out = [tuple(part) for part in op.inputs], tuple(op.output)
    operands = list(args)
    if len(operands) == 1 and single[0] and set(labels[0]) - set(out):
        terms = [a in alone for a in node.args[0].args]
        whole = _sum_of_terms(labels[0], out, operands[0], terms)
        if whole is not None:
            return whole
    factor: Number = 1
    for k, arg in enumerate(operands):
        number, base = split(arg)
        few = 8 * _size(node.shape) <= _size(arg.shape)  # scaling the result is cheap
        moved = number != 1 and base is not None and base.shape == arg.shape and few
        if moved and base is not None and (number == 0 or _moderate(factor * number)):
            factor *= number
            operands[k] = base
    joined, operands = _joined(list(labels), operands, single)
    return scaled(factor, ordered(joined, out, operands))


def _size(shape: Shape) -> int:
    total = 1
    for d in shape:
        total *= d if isinstance(d, int) else TYPICAL
    return total


def _sum_of_terms(
    labels: tuple[int, ...], out: tuple[int, ...], arg: Node, alone: Sequence[bool]
) -> Node | None:
    """Σ (±a ± bc ...) as a sum of contractions, if one of the terms is a product that nothing else reads."""
    if len(set(labels)) < len(labels):
        return None
    if not isinstance(arg.op, Add) or len(arg.args) < 2:
        return None
    if any(a.shape != arg.shape for a in arg.args) or len(alone) != len(arg.args):
        return None
    if not any(single and _is_product(a) for single, a in zip(alone, arg.args, strict=True)):
        return None
    parts = []
    for sign, term, single in zip(arg.op.signs, arg.args, alone, strict=True):
        number, base = split(term)
        if base is None or base.shape != term.shape or not single:
            number, base = 1, term
        inner_labels, operands = _joined([labels], [base], [single])
        parts.append((sign, scaled(number, ordered(inner_labels, out, operands))))
    return signed_sum(parts)


def _is_product(node: Node) -> bool:
    _, base = split(node)
    return base is not None and (_factors(base) is not None)


def _factors(node: Node) -> list[Node] | None:
    """The factors of a product of arrays, or of a square."""
    if isinstance(node.op, Pow) and constant_value(node.args[1]) == 2:
        return [node.args[0]] * 2
    if isinstance(node.op, Mul) and all(p == 1 for p in node.op.powers):
        return list(node.args) if all(a.shape in (node.shape, ()) for a in node.args) else None
    return None


def _joined(
    labels: list[tuple[Hashable, ...]], operands: list[Node], single: Sequence[bool]
) -> tuple[list[tuple[Hashable, ...]], list[Node]]:
    """The operands, with products and contractions that nothing else reads taken apart."""
    made_labels: list[tuple[Hashable, ...]] = []
    made: list[Node] = []
    fresh = 0
    for part, arg, alone in zip(labels, operands, single, strict=True):
        factors = _factors(arg) if alone and len(set(part)) == len(part) else None
        if factors is not None and (len(operands) == 1 or any(_is_outer(f) for f in factors)):
            for f in factors:
                inner = part if f.shape else ()
                if _is_outer(f):
                    names = dict(zip(op_of(f, Einsum).output, inner, strict=True))
                    for sub, a in zip(op_of(f, Einsum).inputs, f.args, strict=True):
                        made_labels.append(tuple(names[x] for x in sub))
                        made.append(a)
                else:
                    made_labels.append(inner)
                    made.append(f)
            fresh += 1
        else:
            made_labels.append(part)
            made.append(arg)
    return made_labels, made


def _is_outer(node: Node) -> bool:
    """Whether a node is a product of several arrays without a sum."""
    op = node.op
    if not isinstance(op, Einsum) or len(op.inputs) < 2:
        return False
    every = {x for part in op.inputs for x in part}
    return every == set(op.output) and len(set(op.output)) == len(op.output)


def _bilinear(parts: Sequence[tuple[Hashable, ...]], out: Sequence[int]) -> list[list[int]] | None:
    """The order of Σ_ij u_i a_ij b_ij ... v_j that sums along rows in memory first; None for other sums."""
    names = [*parts]
    matrix = next((part for part in names if len(set(part)) == 2), None)
    if out or matrix is None or sorted(p for p in names if p != matrix) != sorted((x,) for x in matrix):
        return None
    path = []
    while len(names) > 1:
        whole = [k for k, part in enumerate(names) if part == matrix]
        if len(whole) > 1:
            step, made = whole[:2], matrix
        elif whole:
            step, made = [*whole, names.index(matrix[1:])], matrix[:1]
        else:
            step, made = [0, 1], ()
        names = [part for k, part in enumerate(names) if k not in step] + [made]
        path.append(step)
    return path


def ordered(labels: Sequence[tuple[Hashable, ...]], out: Sequence[int], args: Sequence[Node]) -> Node:
    """A contraction, as products of two operands in the cheapest order."""
    if len(args) < 3:
        return contract(labels, out, *args)
    whole = contract(labels, out, *args)
    if not isinstance(whole.op, Einsum) or len(whole.args) < 3:
        return whole
    op, operands = whole.op, list(whole.args)
    parts = [tuple(p) for p in op.inputs]
    for step in _bilinear(parts, op.output) or _cheapest(op, operands):
        chosen = sorted(step)
        rest = [k for k in range(len(operands)) if k not in chosen]
        needed = {x for k in rest for x in parts[k]} | set(op.output)
        last = not rest
        inside = dict.fromkeys(x for k in chosen for x in parts[k])
        kept = tuple(op.output) if last else tuple(x for x in inside if x in needed)
        same = all(parts[k] == kept for k in chosen)  # no sum: elementwise, in place
        factors = [operands[k] for k in chosen]
        made = mul(*factors) if same else contract([parts[k] for k in chosen], kept, *factors)
        parts = [parts[k] for k in rest] + [kept]
        operands = [operands[k] for k in rest] + [made]
    return operands[-1]


def _cheapest(op: Einsum, operands: Sequence[Node]) -> Sequence[tuple[int, ...]]:
    """The order of products by NumPy's search, which reads the shapes alone."""
    sized = [np.broadcast_to(np.float64(0), [_size((d,)) for d in a.shape]) for a in operands]
    search = "optimal" if len(operands) < 7 else "greedy"
    path: Sequence[tuple[int, ...]] = np.einsum_path(op.spec, *sized, optimize=search)[0][1:]
    return path
