"""NumPy's products of arrays on proxies: dot, einsum, tensordot, outer, and others."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import numpy as np

from symad.core.arrays import ArrayLike
from symad.core.dims import Dim, format_shape, times
from symad.core.graph import Node
from symad.errors import ShapeError
from symad.ops.arrays import stacking
from symad.ops.basic import shaping
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.contraction import contract
from symad.ops.basic.shaping import reshape
from symad.tracing.cheapest_contraction import Labeled, contract_all
from symad.tracing.from_numpy.functions.joining import diagonal
from symad.tracing.from_numpy.functions.reductions import sum_
from symad.tracing.from_numpy.functions.shapes import moveaxis
from symad.tracing.from_numpy.registry import implements, normal_axes
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import as_node, matrix_product, number


@implements(np.dot)
def dot(a: ArrayLike, b: ArrayLike) -> Proxy:
    """NumPy's dot: the last axis of a with the last but one of b."""
    left, right = number(a), number(b)
    if not left.shape or not right.shape:
        return Proxy(mul(left, right))
    first = [f"a{k}" for k in range(len(left.shape) - 1)]
    second = [f"b{k}" for k in range(len(right.shape))]
    second[max(len(right.shape) - 2, 0)] = "sum"
    return Proxy(
        contract([[*first, "sum"], second], [*first, *(x for x in second if x != "sum")], left, right)
    )


@implements(np.vdot)
def vdot(a: ArrayLike, b: ArrayLike) -> Proxy:
    """Σ a b over all elements."""
    return dot(Proxy(shaping.flatten(number(a))), Proxy(shaping.flatten(number(b))))


@implements(np.inner)
def inner(a: ArrayLike, b: ArrayLike) -> Proxy:
    """Σ over the last axes of both."""
    return tensordot(a, b, (-1, -1)) if number(a).shape and number(b).shape else dot(a, b)


@implements(getattr(np.linalg, "outer", None))
def linalg_outer(x1: ArrayLike, x2: ArrayLike, /) -> Proxy:
    """x_i y_j of vectors."""
    return outer(x1, x2)


@implements(np.outer)
def outer(a: ArrayLike, b: ArrayLike) -> Proxy:
    """a_i b_j of all elements."""
    left, right = shaping.flatten(number(a)), shaping.flatten(number(b))
    return Proxy(contract(["i", "j"], "ij", left, right))


@implements(getattr(np.linalg, "tensordot", None))
def linalg_tensordot(
    x1: ArrayLike, x2: ArrayLike, /, *, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2
) -> Proxy:
    """The contraction of paired axes."""
    return tensordot(x1, x2, axes)


@implements(np.tensordot)
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int | Sequence[int]] = 2) -> Proxy:
    """The contraction of paired axes; an int pairs the last axes of a with the first of b."""
    left, right = number(a), number(b)
    if isinstance(axes, (int, np.integer)):
        axes = (range(len(left.shape) - axes, len(left.shape)), range(axes))
    pairs = [
        normal_axes(int(k) if isinstance(k, (int, np.integer)) else tuple(k), len(n.shape))
        for k, n in zip(axes, (left, right), strict=True)
    ]
    first = [f"a{k}" for k in range(len(left.shape))]
    second = [f"b{k}" for k in range(len(right.shape))]
    for i, j in zip(*pairs, strict=True):
        second[j] = first[i]
    kept = [x for x in first if x not in second] + [x for x in second if x not in first]
    return Proxy(contract([first, second], kept, left, right))


@implements(np.einsum, layout=True)
def einsum(subscripts: str | ArrayLike, *operands: ArrayLike) -> Proxy:
    """The contraction of NumPy's subscripts, implicit output and ellipses included.

    The subscripts are a string, or a list of numbers after each operand. The order of products is chosen
    here; ``optimize`` is ignored.
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    nodes = [number(v) for v in operands]
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    _check_subscripts(subscripts, left.split(","), right, nodes)
    inputs = [_spelled(part, len(n.shape)) for part, n in zip(left.split(","), nodes, strict=True)]
    dots = max((p for p in inputs), key=lambda p: sum(x.startswith(".") for x in p))
    leading = [x for x in dots if x.startswith(".")]
    if arrow:
        output = _spelled(right, len(leading) + len(right.replace("...", "")))
    else:
        letters = [x for part in inputs for x in part if not x.startswith(".")]
        output = [*leading, *sorted(x for x in set(letters) if letters.count(x) == 1)]
    inputs, nodes = _squeezed(inputs, nodes)
    return Proxy(
        contract_all([Labeled(n, tuple(p)) for n, p in zip(nodes, inputs, strict=True)], tuple(output))
    )


def _from_lists(arguments: tuple[ArrayLike, ...]) -> tuple[str, tuple[ArrayLike, ...]]:
    """Operands, each followed by its list of numbers, as a string of letters and the operands.

    Raises:
        ShapeError: a list holds something else.
    """
    pairs = len(arguments) // 2
    lists = [*arguments[1 : 2 * pairs : 2], *arguments[2 * pairs :]]
    parts = []
    for labels in lists:
        if not isinstance(labels, (list, tuple)) or not all(map(_is_label, labels)):
            raise ShapeError(f"np.einsum: {labels!r} is not a list of numbers 0 to 51 and one ellipsis")
        parts.append("".join("..." if k is Ellipsis else ascii_letters[k] for k in labels))
    output = f"->{parts[pairs]}" if len(arguments) % 2 else ""
    return ",".join(parts[:pairs]) + output, arguments[0 : 2 * pairs : 2]


def _is_label(k: ArrayLike) -> bool:
    return k is Ellipsis or (isinstance(k, (int, np.integer)) and 0 <= int(k) < len(ascii_letters))


def _check_subscripts(subscripts: str, parts: list[str], output: str, nodes: list[Node]) -> None:
    """Refuse subscripts that are malformed, or do not match the operands.

    Raises:
        ShapeError: the message names the subscripts and the shapes of the operands.
    """
    shapes = ", ".join(format_shape(n.shape) for n in nodes)
    given = f"np.einsum({subscripts!r}) of operands of shape {shapes}"
    if len(parts) != len(nodes):
        raise ShapeError(f"{given}: there are {len(parts)} parts of subscripts for {len(nodes)} operands")
    for part in (*parts, output):
        if not all(c.isalpha() for c in part.replace("...", "", 1)):
            raise ShapeError(f"{given}: {part!r} is not of letters and one ellipsis")
    for part, node in zip(parts, nodes, strict=True):
        letters = len(part.replace("...", ""))
        if letters > len(node.shape) or (letters < len(node.shape) and "..." not in part):
            raise ShapeError(f"{given}: {part!r} does not fit {format_shape(node.shape)}")
    letters_of = output.replace("...", "")
    if len(set(letters_of)) < len(letters_of) or not set(letters_of) <= set("".join(parts)):
        raise ShapeError(f"{given}: each letter of the output occurs there once and in an operand")


def _spelled(part: str, rank: int) -> list[str]:
    """Subscripts as a list of labels; the ellipsis becomes labels ``.k``, numbered from the right."""
    if "..." not in part:
        return list(part)
    before, _, after = part.partition("...")
    hidden = rank - len(before) - len(after)
    return [*before, *(f".{k}" for k in range(hidden, 0, -1)), *after]


def _squeezed(inputs: list[list[str]], nodes: list[Node]) -> tuple[list[list[str]], list[Node]]:
    """Remove axes of length 1 that broadcast against longer ones."""
    lengths: dict[str, Dim] = {}
    for part, node in zip(inputs, nodes, strict=True):
        for label, dim in zip(part, node.shape, strict=True):
            if lengths.get(label, 1) == 1:
                lengths[label] = dim
    labels, made = [], []
    for part, node in zip(inputs, nodes, strict=True):
        keep = [k for k, x in enumerate(part) if not (node.shape[k] == 1 and lengths[x] != 1)]
        labels.append([part[k] for k in keep])
        made.append(reshape(node, tuple(node.shape[k] for k in keep)))
    return labels, made


@implements(np.kron)
def kron(a: ArrayLike, b: ArrayLike) -> Proxy:
    """The Kronecker product of arrays with equally many axes."""
    left, right = number(a), number(b)
    rank = max(len(left.shape), len(right.shape))
    left, right = (reshape(n, (1,) * (rank - len(n.shape)) + n.shape) for n in (left, right))
    first, second = [f"a{k}" for k in range(rank)], [f"b{k}" for k in range(rank)]
    mixed = [label for pair in zip(first, second, strict=True) for label in pair]
    shape = tuple(times(m, n) for m, n in zip(left.shape, right.shape, strict=True))
    return Proxy(reshape(contract([first, second], mixed, left, right), shape))


@implements(np.cross)
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Proxy:
    """The vector product of vectors of length 3 along an axis of each; ``axis`` names all three.

    Raises:
        ShapeError: an axis that is not of length 3.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = (_vectors_last(v, k) for v, k in ((a, axisa), (b, axisb)))
    parts = [x[..., j] * y[..., k] - x[..., k] * y[..., j] for j, k in ((1, 2), (2, 0), (0, 1))]
    nodes = [as_node(p) for p in parts]
    return moveaxis(Proxy(stacking.stack(nodes, len(nodes[0].shape))), -1, axisc)


def _vectors_last(a: ArrayLike, axis: int) -> Proxy:
    """An array with one axis, of length 3, moved to the end."""
    whole: Any = Proxy(number(a))
    (k,) = normal_axes(axis, whole.ndim)
    if whole.shape[k] != 3:
        raise ShapeError(f"np.cross of {format_shape(whole.shape)}: axis {k} must have length 3")
    return np.moveaxis(whole, k, -1)


@implements(getattr(np.linalg, "cross", None))
def linalg_cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Proxy:
    """The vector product along an axis of length 3."""
    return cross(x1, x2, axis=axis)


@implements(np.trace)
def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Proxy:
    """The sum of a diagonal."""
    return sum_(diagonal(a, offset, axis1, axis2), -1)


@implements(getattr(np.linalg, "matmul", None))
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Proxy:
    """The matrix product."""
    return Proxy(matrix_product(x1, x2))
