"""Statements of matrix products, written into a given array, recycled memory or new memory."""

from __future__ import annotations

from symad.core.graph import Node
from symad.numeric.numpy_arrays.memory_reuse import recycled_product
from symad.numeric.numpy_arrays.printing import InPlacePrinting
from symad.numeric.numpy_arrays.texts import Part, Turned, assigned, is_name
from symad.numeric.targets.target import MatrixProduct


def product_line(node: Node, printer: InPlacePrinting) -> str | None:
    """The statement of a matrix product; None for other contractions."""
    slot = printer.slots.get(node)
    product = printer.writer.product(node)
    if product is None:
        return None
    dotted = _dotted(node, product, slot, printer) if printer.depth else None
    if dotted is not None:
        return dotted
    if slot is not None:
        printer.text[node] = slot
        if is_plain(product):
            return str(printer.product_into(product, slot))
        return assigned(slot, printer.product_text(product))
    recycled = printer.placed.kept(node)
    made = recycled_product(node, product, printer) if recycled else printer.product_text(product)
    printer.text[node] = printer.name_for(node)
    return f"{printer.text[node]} = {made}"


def is_plain(product: MatrixProduct) -> bool:
    """Whether a product is of named matrices or their transposes, and its result is not reshaped."""
    sides = (side.of if isinstance(side, Turned) else side for side in (product.left, product.right))
    return not product.after and all(map(is_name, sides))


def _dotted(node: Node, product: MatrixProduct, slot: str | None, printer: InPlacePrinting) -> str | None:
    """The statement of a matrix product by ``dot``, which has less overhead per call than ``matmul``.

    ``dot`` writes only to contiguous arrays of the dtype that its result would have.
    """
    large = slot is None and printer.placed.kept(node)
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
