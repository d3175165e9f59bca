"""Roots by Newton's method, with a nested function that returns the residual and its Jacobian."""

from __future__ import annotations

from symad.core.graph import Node
from symad.errors import LoweringError
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.printing import Printing
from symad.numeric.targets import helpers
from symad.ops.linalg.root import Root, residual_at, slope_at, sparse_slope
from symad.ops.sparse.sparse_solve import solve_sparse


def root_lines(op: Root, library: ArrayLibrary, node: Node, name: str, printer: Printing) -> list[str]:
    """The statements that assign the solution to ``name``; a batch is solved problem by problem.

    Raises:
        LoweringError: the root has a solver of the user.
    """
    if op.solver is not None:
        raise LoweringError("implicit with a solver of your own cannot be written as standalone code")
    outer = printer.text
    local = op.residual.input_nodes
    function, unknown = printer.value_name("equations"), printer.value_name("x")
    moving = [k for k, batched in enumerate(op.batched) if batched and k]
    own = {k: printer.value_name(f"p{k}") for k in moving}
    given = [unknown, *(own.get(k, outer[a]) for k, a in enumerate(node.args) if k)]
    sparse = sparse_slope(op.residual) if library.module == "numpy" else None
    slope = sparse if sparse is not None else slope_at(op, local[0], local[1:])
    outputs = (residual_at(op, local[0], local[1:]), slope)
    with printer.inside(dict(zip(local, given, strict=True))):
        inner = printer.statements(outputs)
        result = ", ".join(printer.text[o] for o in outputs)
    solver = ""
    if sparse is not None:
        helper = printer.writer.helper(solve_sparse)
        solver = f", lambda a, b: {helper}(a.data, b, a.indptr, a.indices, False)"
    newton, guess = printer.writer.helper(helpers._newton), outer[node.args[0]]
    if not any(op.batched):
        solve = f"{name} = {newton}({function}, {guess}{solver})"
    else:
        row = printer.value_name("row")
        point = "".join(f", {outer[node.args[k]]}[{row}]" for k in moving)
        start = f"{guess}[{row}]" if op.batched[0] else guess
        one = f"{newton}(lambda {unknown}: {function}({unknown}{point}), {start}{solver})"
        rows = f"[{one} for {row} in range({printer.bare(node.shape[0])})]"
        solve = f"{name} = {printer.np}.reshape({printer.np}.array({rows}), {printer.dims(node.shape)})"
    return [
        f"def {function}({', '.join([unknown, *own.values()])}):",
        *(f"    {line}" for line in inner),
        f"    return {result}",
        solve,
    ]
