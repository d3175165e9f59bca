"""Mistakes in a derivative as a whole: sign, factor, input, direction, a number of the function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.errors import SymadError
from symad.numbers.values import unchecked
from symad.ops.basic.sources import ArrayConstant, Constant, array_constant, constant
from symad.verification.fields.prime_fields import Array
from symad.verification.mistakes.elements import movements
from symad.verification.mistakes.local import lengths
from symad.verification.mistakes.network import ChainNetwork, Change, Difference
from symad.verification.mistakes.words import Words

EPSILONS = (0.0, 1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12)
LARGEST_EPSILON = 1e-2
MAX_CONSTANTS = 12
"""The maximum number of numbers in the function that may be other ones."""

Evaluate = Callable[[Mapping[Node, Array]], Array]


def scaled(net: ChainNetwork, parts: Sequence[slice]) -> Iterator[Change]:
    """Each part, or all, with another factor; 0 where it should not be, and the reverse."""
    for part in [slice(0, net.result.shape[1]), *parts]:
        effect = np.zeros_like(net.result)
        effect[:, part] = -net.result[:, part]
        yield Change((0.0,), "it should not be zero", effect, "{}")


def of_elements(net: ChainNetwork, parts: Sequence[slice]) -> Iterator[Change]:
    """Elements of the result in other places; the derivative by another input; J v in place of Jᵀ v."""
    result = net.result
    for part, node in zip(parts, net.last, strict=True):
        shape = lengths(node)
        own = result[:, part].reshape(len(result), *shape)
        for rank, (text, other) in enumerate(movements(own, shape)):
            effect = np.zeros_like(result)
            effect[:, part] = (other - own).reshape(len(result), -1)
            yield Change((0.0 if text == "transposed" else 0.5, float(rank)), text, effect)
        for part_, node_ in zip(parts, net.last, strict=True):
            if node_ is not node and node_.shape == node.shape:
                effect = np.zeros_like(result)
                effect[:, part] = result[:, part_] - result[:, part]
                told = Words({}).of(node_) if not net.forward else "another output"
                yield Change((0.8,), f"it is the derivative by {told}", effect)


def of_the_other_product(net: ChainNetwork) -> Iterator[Change]:
    """J v in place of Jᵀ v, or the reverse."""
    if len(net.first) == len(net.last) == 1 and net.first[0].shape == net.last[0].shape:
        (node,) = net.first
        seed = np.stack([np.asarray(s[0], dtype=float).ravel() for s in net.seeds])
        if node in net.effect and net.effect[node].shape[1] == net.effect[node].shape[2]:
            other = np.einsum("pwa,pw->pa", net.effect[node], seed)
            text = "Jᵀ v in place of J v" if net.forward else "J y_bar in place of Jᵀ y_bar"
            yield Change((9.5,), text, other - net.result)


def of_directions(net: ChainNetwork, names: Sequence[str]) -> Iterator[Change]:
    """A direction that is ignored, replaced by its sum, or has its elements in other places."""
    for k, node in enumerate(net.first):
        if node not in net.effect:
            continue
        shape = lengths(node)
        seed = np.stack([np.asarray(s[k], dtype=float) for s in net.seeds])
        flat = seed.reshape(len(seed), -1)
        ones = np.ones_like(flat)
        yield Change((1.0,), f"{names[k]} is ignored", net.changed(node, ones - flat))
        yield Change((1.05,), f"the path through {names[k]} is missing", net.changed(node, -flat))
        if flat.shape[1] > 1:
            mean = flat.mean(axis=1, keepdims=True)
            for text, other in (("the mean of ", mean), ("the sum of ", mean * flat.shape[1])):
                effect = net.changed(node, other - flat)
                yield Change((1.1,), f"{text}{names[k]} in place of its elements", effect)
        for text, made in movements(seed, shape):
            yield Change((1.2,), f"{names[k]}: {text}", net.changed(node, made.reshape(flat.shape) - flat))
        shapes = ("sign", np.sign(flat)), ("absolute value", np.abs(flat)), ("square", flat**2)
        for text, made in shapes:
            yield Change((1.3,), f"the {text} of {names[k]} in its place", net.changed(node, made - flat))
        for j, other_node in enumerate(net.first):
            if j != k and other_node.shape == node.shape and other_node in net.effect:
                other = np.stack([np.asarray(s[j], dtype=float).ravel() for s in net.seeds])
                text = f"{names[j]} stands in place of {names[k]}"
                yield Change((1.15,), text, net.changed(node, other - flat))
                if j > k:
                    both = net.changed(node, other - flat) + net.changed(other_node, flat - other)
                    yield Change((1.1,), f"{names[k]} and {names[j]} are swapped", both)


def of_inputs(
    evaluate: Evaluate, points: Sequence[Mapping[Node, Array]], difference: Difference
) -> Iterator[Change]:
    """The derivative where one input is reversed, transposed or another one: a kernel that is not flipped."""
    inputs = [n for n in points[0] if np.asarray(points[0][n]).dtype.kind == "f"]
    for node in inputs:
        shape, told = lengths(node), Words({}).of(node)
        rows = np.stack([np.asarray(p[node], dtype=float) for p in points])
        flipped = np.flip(rows, tuple(range(1, rows.ndim)))
        more = [("reversed along all axes", flipped)] if rows.ndim > 2 else []
        for text, other in [*movements(rows, shape), *more]:
            if text.split()[0] in ("reversed", "transposed", "shifted"):
                moved = [{**p, node: o} for p, o in zip(points, other, strict=True)]
                effect = _if_it_may_be(evaluate, moved, difference)
                if effect is not None:
                    yield Change((7.2, len(text)), f"{told} is {text}", effect)
        for other_node in inputs:
            if other_node is not node and other_node.shape == node.shape:
                swapped = [{**p, node: p[other_node]} for p in points]
                effect = _if_it_may_be(evaluate, swapped, difference)
                if effect is not None:
                    yield Change((8.5,), f"{Words({}).of(other_node)} stands in place of {told}", effect)


def _if_it_may_be(
    evaluate: Evaluate, points: Sequence[Mapping[Node, Array]], difference: Difference
) -> Array | None:
    """How a derivative changes, if it does as the candidate at the first point."""
    first = _at(evaluate, points[:1], difference.right[:1])
    if first is None or not difference.may_be(first[0]):
        return None
    return _at(evaluate, points, difference.right)


def of_numbers(
    function: Sequence[Node], reference: Graph, points: Sequence[Mapping[Node, Array]], right: Array
) -> Iterator[Change]:
    """The derivative of a function with another number: without its ε or its mask, or with n − 1 for n."""
    found = topological(function)
    for node in [n for n in found if isinstance(n.op, ArrayConstant)]:
        array = op_of(node, ArrayConstant).array
        for other in (0.0 * np.isinf(array), np.ones(array.shape)) if array.dtype.kind == "f" else ():
            outputs = rebuild(reference.output_nodes, {node: array_constant(other)})
            effect = _at(partial(flat_values, outputs), points, right)
            if effect is not None:
                text = "a mask is not applied" if np.isinf(array).any() else "an array of numbers is left out"
                yield Change((2.6,), text, effect)
    for node in [n for n in found if isinstance(n.op, Constant)][:MAX_CONSTANTS]:
        value = _number(op_of(node, Constant).value)
        for other in _others(value) if value else ():
            outputs = rebuild(reference.output_nodes, {node: constant(other)})
            effect = _at(partial(flat_values, outputs), points, right)
            if effect is not None:
                told = f"{float(value):g}"
                text = f"the number {told} is forgotten"
                if other:
                    text = f"the number {float(other):g} stands in place of {told}"
                yield Change((2.5 if _is_epsilon(value) else 7.5,), text, effect)


def _number(value: object) -> float | Fraction:
    """A number that is no truth value; 0 for anything else."""
    return value if isinstance(value, (int, float, Fraction)) and not isinstance(value, bool) else 0


def _is_epsilon(value: float | Fraction) -> bool:
    return -LARGEST_EPSILON < value < LARGEST_EPSILON


def _others(value: float | Fraction) -> list[float | int]:
    """Numbers that may stand in place of one."""
    if _is_epsilon(value):
        return [e for e in EPSILONS if e != value]
    if isinstance(value, int):
        return [v for v in (value - 1, value + 1, -value) if v]
    return [-float(value), 2 * float(value), float(value) / 2]


def flat_values(outputs: Sequence[Node], point: Mapping[Node, Array]) -> Array:
    """The values of some nodes, one after the other."""
    return np.concatenate([np.asarray(v, dtype=float).ravel() for v in unchecked(outputs, point)])


def _at(evaluate: Evaluate, points: Sequence[Mapping[Node, Array]], right: Array) -> Array | None:
    """How a derivative changes; None where it has no value."""
    try:
        return np.stack([evaluate(p) for p in points]) - right
    except (SymadError, ArithmeticError, ValueError, TypeError, np.linalg.LinAlgError):
        return None
