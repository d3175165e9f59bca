"""Roots by Newton's method, which calls a function of the residual and its Jacobian."""

from __future__ import annotations

from symad.core.graph import Node
from symad.derivatives.root import Root
from symad.errors import LoweringError
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.printing import Printing
from symad.numeric.targets import helpers
from symad.ops.sparse.csr import CompressedRows
from symad.ops.sparse.sparse_solve import solve_sparse


def root_lines(op: Root, library: ArrayLibrary, node: Node, name: str, printer: Printing) -> list[str]:
    """The statements that assign the solution to ``name``; a batch is solved problem by problem.

    Raises:
        LoweringError: the root has a solver of the user.
    """
    if op.solver is not None:
        raise LoweringError("implicit with a solver of your own cannot be written as standalone code")
    outer = printer.text
    (function,) = printer.called_names
    _, slope = printer.function_results[function]
    moving = [k for k, batched in enumerate(op.batched) if batched and k]
    solver = ""
    if isinstance(slope.op, CompressedRows):
        helper = printer.writer.helper(solve_sparse)
        solver = f", lambda a, b: {helper}(a.data, b, a.indptr, a.indices, False)"
    newton, guess = printer.writer.helper(helpers._newton), outer[node.args[0]]
    if not any(op.batched):
        solve = f"{name} = {newton}({function}, {guess}{solver})"
    else:
        row, unknown = printer.value_name("row"), printer.value_name("x")
        point = "".join(f", {outer[node.args[k]]}[{row}]" for k in moving)
        start = f"{guess}[{row}]" if op.batched[0] else guess
        one = f"{newton}(lambda {unknown}: {function}({unknown}{point}), {start}{solver})"
        rows = f"[{one} for {row} in range({printer.bare(node.shape[0])})]"
        solve = f"{name} = {printer.np}.reshape({printer.np}.array({rows}), {printer.dims(node.shape)})"
    return [solve]
