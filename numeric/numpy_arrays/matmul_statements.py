"""Statements of matrix products: into the place of a result, memory that is used again, or new memory."""

from __future__ import annotations

from typing import Any

from symad.core.graph import Node
from symad.numeric.numpy_arrays.memory_reuse import is_recycled, recycled_product
from symad.numeric.numpy_arrays.texts import Name, Part, Turned, assigned, is_name
from symad.numeric.targets.contractions import MatrixProduct


def product_line(node: Node, product: MatrixProduct, printer: Any) -> str:
    """The statement of a matrix product."""
    slot = printer.slots.get(node)
    dotted = _dotted(node, product, slot, printer) if printer.depth else None
    if dotted is not None:
        return dotted
    if slot is not None:
        printer.text[node] = slot
        if is_plain(product):
            return str(printer.product_into(product, slot))
        return assigned(slot, printer.product_text(product))
    recycled = is_recycled(node, printer)
    made = recycled_product(node, product, printer) if recycled else printer.product_text(product)
    printer.text[node] = printer.name_for(node)
    return f"{printer.text[node]} = {made}"


def is_plain(product: MatrixProduct) -> bool:
    """Whether names are multiplied, perhaps transposed, and nothing follows."""
    sides = (side.of if isinstance(side, Turned) else side for side in (product.left, product.right))
    return not product.after and all(map(is_name, sides))


def _dotted(node: Node, product: MatrixProduct, slot: Name | Part | None, printer: Any) -> str | None:
    """The statement of a product of matrices by ``dot``, which begins sooner than ``matmul`` does.

    It writes only where the result would stand by itself: in whole arrays of floats.
    """
    large = slot is None and is_recycled(node, printer)
    if not is_plain(product) or large or any(not 0 < len(a.shape) < 3 for a in (node, *node.args)):
        return None
    call = f"{product.left}.dot({product.right}"
    if slot is None:
        printer.text[node] = printer.name_for(node)
        return f"{printer.text[node]} = {call})"
    base, index = (slot.base, slot.at) if isinstance(slot, Part) else (slot, ())
    if base not in printer.whole or len(index) > 1 or not all(map(printer.holds_floats, node.args)):
        return None
    printer.text[node] = slot
    return f"{call}, {slot})"
