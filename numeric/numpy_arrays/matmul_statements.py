"""Statements of matrix products, written into a given array, recycled memory or new memory."""

from __future__ import annotations

from string import Template

from symad.core.graph import Node
from symad.numeric.numpy_arrays.memory_reuse import recycled_product, with_new
from symad.numeric.numpy_arrays.printing import InPlacePrinting
from symad.numeric.numpy_arrays.texts import Part, Turned, assigned, is_name
from symad.numeric.passes.blocking.blocked_products import steps_at_a_time
from symad.numeric.targets.target import MatrixProduct

SUMMED = '''def _summed(a, b, steps):
    """The sum of a[t] @ b[t].T over t, some steps at a time: what BLAS reads is in the cache."""
    count, rows, width = a.shape
    columns = b.shape[1]
    total, more = (_new((rows, columns), a.dtype) for _ in range(2))
    left, right = (_new((n*steps*width,), a.dtype) for n in (rows, columns))
    for start in range(0, count, steps):
        part = slice(start, start + steps)
        size = min(steps, count - start)*width
        first = left[:rows*size].reshape(rows, size)
        first.reshape(rows, -1, width)[...] = a[part].transpose(1, 0, 2)
        second = right[:size*columns].reshape(size, columns)
        second.reshape(-1, width, columns)[...] = b[part].transpose(0, 2, 1)
        $multiply(first, second, more if start else total)
        if start:
            total += more
    return total
'''


def product_line(node: Node, printer: InPlacePrinting) -> str | None:
    """The statement of a matrix product; None for other contractions."""
    slot = printer.slots.get(node)
    steps = steps_at_a_time(node)
    if steps is not None:
        made = _summed(node, steps, printer)
        printer.text[node] = slot or printer.name_for(node)
        return assigned(slot, made) if slot is not None else f"{printer.text[node]} = {made}"
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


def _summed(node: Node, steps: int, printer: InPlacePrinting) -> str:
    """The sum of the products of all steps, in recycled memory."""
    with_new(printer)
    helper = printer.helper("_summed", Template(SUMMED).substitute(multiply=printer.multiplication()))
    left, right = (printer.text[arg] for arg in node.args)
    return f"{helper}({left}, {right}, {steps})"


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
