"""Roots as Newton's method on a nested function that gives the residual and its Jacobian."""

from __future__ import annotations

from typing import Any

from symad.errors import LoweringError
from symad.graph import Node
from symad.numeric.backends import ArrayLibrary
from symad.ops.root import Root, residual_at, slope_at

NEWTON = '''def _newton(equations, x):
    residual, slope = equations(x)
    tolerance = 450*np.finfo(residual.dtype).eps
    for _ in range(100):
        move = np.linalg.solve(slope, residual)
        small = abs(move).max() <= tolerance*(1 + abs(x).max())
        scale = 1.0
        for _ in range(30):
            new = x - scale*move
            new_residual, new_slope = equations(new)
            if small or abs(new_residual).max() < abs(residual).max():
                break
            scale /= 2
        x, residual, slope = new, new_residual, new_slope
        if small or not residual.any():
            return x
    raise ArithmeticError(f"Newton did not converge; it stopped at x = {x}, F = {residual}")
'''


def root_lines(op: Root, library: ArrayLibrary, node: Node, name: str, printer: Any) -> list[str]:
    """The statements that solve for ``name``."""
    if op.solver is not None or any(op.batched):
        what = "a solver of your own" if op.solver is not None else "a batch of implicit problems"
        raise LoweringError(f"implicit with {what} cannot be written as standalone code")
    outer = dict(printer.text)
    local = op.residual.input_nodes
    function, unknown = printer.value_name("equations"), printer.value_name("x")
    printer.text.update(zip(local[1:], (outer[a] for a in node.args[1:]), strict=True))
    printer.text[local[0]] = unknown
    outputs = (residual_at(op, local[0], local[1:]), slope_at(op, local[0], local[1:]))
    inner = printer.statements(outputs)
    result = ", ".join(printer.text[o] for o in outputs)
    printer.text = outer
    return [
        f"def {function}({unknown}):",
        *(f"    {line}" for line in inner),
        f"    return {result}",
        f"{name} = {printer.helper('_newton', NEWTON)}({function}, {outer[node.args[0]]})",
    ]
