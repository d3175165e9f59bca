"""Ops with several results, or with a body, as calls of functions of the module."""

from __future__ import annotations

from symad.derivatives.implicit import Root
from symad.errors import LoweringError
from symad.fused.attention_ops import AttentionOp
from symad.fused.pair_sum import PairOp
from symad.numeric.numpy_arrays.expressions import called
from symad.numeric.numpy_arrays.pairs.attention_printer import numbers_of, numpy_call
from symad.numeric.numpy_arrays.pairs.pair_sum_printer import pair_call
from symad.numeric.numpy_arrays.statements import Made, computed, kernel_lines, results_by_number
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.program.expressions import Read, op_in
from symad.numeric.program.statements import Assign
from symad.numeric.targets import helpers
from symad.numeric.targets.statements import Lines
from symad.ops.sparse.csr import CompressedRows
from symad.ops.sparse.sparse_solve import solve_sparse


@kernel_lines.dispatch
def attention_lines(op: AttentionOp, writer: ArrayWriter, made: Made) -> Lines:
    """The statement that computes all results of an attention op."""
    found = computed(made)
    call = numpy_call(op, found, [writer.operand(a) for a in found.args], writer)
    names = writer.result_names(numbers_of(op), results_by_number(made))
    return [f"{', '.join(names)} = {call}"]


@kernel_lines.dispatch
def pair_lines(op: PairOp, writer: ArrayWriter, made: Made) -> Lines:
    """The statement that computes all results of a sum over pairs, or of its cotangents."""
    found = computed(made)
    return pair_call(op, found, [writer.operand(a) for a in found.args], results_by_number(made), writer)


@kernel_lines.dispatch
def root_lines(op: Root, writer: ArrayWriter, made: Made) -> Lines:
    """The solution by Newton's method; a batch is solved problem by problem.

    Raises:
        LoweringError: the root has a solver of the user.
    """
    if op.solver is not None:
        raise LoweringError("implicit with a solver of your own cannot be written as standalone code")
    statement: Assign = made[0]
    found = computed(made)
    (function,) = called(found, writer)
    slope = writer.functions[found.functions[0]][1].results[1]
    matrix = op_in(writer.made[slope.value]) if isinstance(slope, Read) else op_in(slope)
    solver = ""
    if isinstance(matrix, CompressedRows):
        solver = f", lambda a, b: {writer.helper(solve_sparse)}(a.data, b, a.indptr, a.indices, False)"
    newton, guess = writer.helper(helpers._newton), writer.operand(found.args[0])
    name = writer.name_for(statement.value)
    if not any(op.batched):
        return [f"{name} = {newton}({function}, {guess}{solver})"]
    row, unknown = writer.value_name("row"), writer.value_name("x")
    moving = [k for k, batched in enumerate(op.batched) if batched and k]
    point = "".join(f", {writer.operand(found.args[k])}[{row}]" for k in moving)
    start = f"{guess}[{row}]" if op.batched[0] else guess
    one = f"{newton}(lambda {unknown}: {function}({unknown}{point}), {start}{solver})"
    rows = f"[{one} for {row} in range({writer.dim(found.shape[0])})]"
    return [f"{name} = {writer.np}.reshape({writer.np}.array({rows}), {writer.dims(found.shape)})"]
