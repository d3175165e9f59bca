"""Recurrences with associative steps, for all steps at once: `affine_scan`, `associative_scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import format_shape, same_shape
from symad.core.given import check_callable, real_array
from symad.core.graph import Node
from symad.errors import ShapeError
from symad.higher_order.affine_scan import affine_scan as affine_nodes
from symad.higher_order.affine_scan import join_pairs
from symad.ops.arrays.stacking import concatenate, stack
from symad.ops.basic.shaping import reshape, slice_axis
from symad.ops.basic.sources import fresh_input
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.sessions import body
from symad.tracing.proxies.wrapped import broadcast, number
from symad.transforms.batches import batch_outputs


def affine_scan(a: Array, b: Array, initial: Array | None = None, reverse: bool = False) -> Array:
    """All h_t = a_t h_{t−1} + b_t, t = 1..T, in O(log T) steps of whole arrays.

    If products of many a_t overflow, the combined steps overflow before the states do.

    Args:
        a: (T, ...) like b: products of elements; or (T, ..., n, n), one axis more than b: matrices.
        b: (T, ...).
        initial: h_0, in the shape of one b_t; 0 by default.
        reverse: h_t = a_t h_{t+1} + b_t instead, from h_{T+1}.

    Returns:
        All h_t, an array like b.

    Raises:
        ShapeError: the shapes do not fit.

    Example:
        >>> import numpy as np
        >>> from symad import functions
        >>> functions.affine_scan(np.full(4, 0.5), np.ones(4))  # h ← h/2 + 1, from 0
        array([1.   , 1.5  , 1.75 , 1.875])
    """
    if not any(isinstance(v, Proxy) for v in (a, b, initial)):
        a, b = (np.asarray(real_array("affine_scan", *x), float) for x in (("a", a), ("b", b)))
        return _affine_arrays(a, b, initial, reverse)
    rate, added = number(a), number(b)
    if len(rate.shape) == len(added.shape):
        rate, added = broadcast(rate, added)
    return Proxy(affine_nodes(rate, added, None if initial is None else number(initial), reverse))


def _affine_arrays(a: Any, b: Any, initial: Any, reverse: bool) -> Array:
    """The same function on arrays."""
    matrices = a.ndim == b.ndim + 1
    if not matrices:
        a, b = np.broadcast_arrays(a, b)
    if initial is not None:
        initial = real_array("affine_scan", "initial", initial)
        b, edge = b.copy(), -1 if reverse else 0
        b[edge] += np.einsum("...ij,...j->...i", a[edge], initial) if matrices else a[edge] * initial
    if matrices:
        return join_pairs(a, b[..., None], True, reverse)[..., 0]
    return join_pairs(a, b, False, reverse)


def associative_scan(
    combine: Callable[..., Array], elements: Array | Sequence[Array], reverse: bool = False
) -> Array | tuple[Array, ...]:
    """All e_1, e_1·e_2, e_1·e_2·e_3, … of an associative product, in O(log T) steps of whole arrays.

    Neighbors are combined in pairs, then the pairs, and so on (Blelloch 1990, "Prefix sums and their
    applications"). ``combine`` is traced once and applied to all pairs of a level together; derivatives
    are those of the products. For steps x → a x + b, use elements (a, b) and ``combine = lambda e, f:
    (f[0] * e[0], f[0] * e[1] + f[1])``; for these `affine_scan` also accepts symbolic lengths.

    Args:
        combine: from an earlier and a later element to their product, of the same shape(s).
        elements: an array (T, ...) or a tuple of such; T is a number.
        reverse: products from the last element on: position t has e_T·e_{T−1}·...·e_t.

    Returns:
        The products with the leading axis T, in the form of ``elements``: an array, or a tuple of arrays.

    Raises:
        ShapeError: no elements, elements of different or symbolic length, or a product of another shape.

    Example:
        >>> import numpy as np
        >>> from symad import functions
        >>> functions.associative_scan(np.multiply, np.arange(1.0, 6.0))  # factorials
        array([  1.,   2.,   6.,  24., 120.])
    """
    several = isinstance(elements, (tuple, list))
    check_callable("associative_scan", "combine", combine, "earlier", "later")
    given = tuple(
        real_array("associative_scan", "elements", e) for e in (elements if several else (elements,))
    )
    if not any(isinstance(e, Proxy) for e in given):
        return _products_of_arrays(combine, given, several, reverse)
    nodes = [number(e) for e in given]
    lengths = {n.shape[0] if n.shape else 0 for n in nodes}
    if len(lengths) != 1 or not all(isinstance(k, int) and k > 0 for k in lengths):
        raise ShapeError(
            "associative_scan needs elements with one leading axis of known length, but they have the shapes "
            f"{', '.join(format_shape(n.shape) for n in nodes)}; affine_scan takes symbolic lengths"
        )
    join = _Join(combine, nodes, several)
    turned = [_flip(n) for n in nodes] if reverse else nodes
    found = [Proxy(_flip(n) if reverse else n) for n in _products(turned, join)]
    return tuple(found) if several else found[0]


class _Join:
    """The traced product, applied to many pairs at once."""

    def __init__(self, combine: Callable[..., Array], nodes: Sequence[Node], several: bool) -> None:
        self.fresh = [fresh_input(n.shape[1:]) for n in (*nodes, *nodes)]
        with body("the product of associative_scan"):
            early, late = ([Proxy(n) for n in half] for half in self._halves(self.fresh))
            made = combine(tuple(early), tuple(late)) if several else combine(early[0], late[0])
            self.made = [number(m) for m in (made if several else (made,))]
        wanted, got = [n.shape[1:] for n in nodes], [m.shape for m in self.made]
        if len(wanted) != len(got) or not all(map(same_shape, wanted, got)):
            shapes = [", ".join(map(format_shape, s)) for s in (wanted, got)]
            raise ShapeError(
                f"associative_scan: the elements have shapes {shapes[0]}, their product {shapes[1]}"
            )

    @staticmethod
    def _halves(nodes: Sequence[Node]) -> tuple[Sequence[Node], Sequence[Node]]:
        return nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]

    def __call__(self, early: Sequence[Node], late: Sequence[Node]) -> list[Node]:
        """The products of pairs: (P, ...) each."""
        pairs = dict(zip(self.fresh, (*early, *late), strict=True))
        return list(batch_outputs(self.made, pairs, early[0].shape[0]))


def _products(nodes: list[Node], join: _Join) -> list[Node]:
    """All products, from those of the combined pairs; the depth is log2 T."""
    length = int(nodes[0].shape[0])
    if length < 2:
        return nodes
    half = length // 2
    even = [slice_axis(n, 0, 0, half, 2) for n in nodes]
    odd = _products(join(even, [slice_axis(n, 0, 1, half, 2) for n in nodes]), join)
    rest = (length - 1) // 2
    if not rest:
        return [concatenate([slice_axis(n, 0, 0, 1), o]) for n, o in zip(nodes, odd, strict=True)]
    between = join([slice_axis(o, 0, 0, rest) for o in odd], [slice_axis(n, 0, 2, rest, 2) for n in nodes])
    return [_interleaved(*parts) for parts in zip(nodes, odd, between, strict=True)]


def _interleaved(first: Node, odd: Node, between: Node) -> Node:
    """e_1, then elements of odd and between alternately."""
    rest, inner = between.shape[0], between.shape[1:]
    turns = reshape(stack([slice_axis(odd, 0, 0, rest), between], 1), (2 * rest, *inner))
    tail = [slice_axis(odd, 0, rest, 1)] if odd.shape[0] > rest else []
    return concatenate([slice_axis(first, 0, 0, 1), turns, *tail])


def _flip(n: Node) -> Node:
    return slice_axis(n, 0, int(n.shape[0]) - 1, n.shape[0], -1)


def _products_of_arrays(
    combine: Callable[..., Array], given: Sequence[Array], several: bool, reverse: bool
) -> Array | tuple[Array, ...]:
    """The definition, on arrays: one product after the other."""
    if not all(np.ndim(e) for e in given):
        raise ShapeError("associative_scan: elements has shape (); give arrays (T, ...)")
    rows = list(zip(*(np.asarray(e)[:: -1 if reverse else 1] for e in given), strict=True))
    found = [rows[0] if several else rows[0][0]]
    for row in rows[1:]:
        found.append(combine(found[-1], row if several else row[0]))
    turned = found[::-1] if reverse else found
    if several:
        return tuple(np.stack(part) for part in zip(*turned, strict=True))
    return np.stack(turned)
