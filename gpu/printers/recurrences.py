"""Loops over time in CuPy code: one kernel, launched once if its matrices are small, else once per step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symad.core.dims import Dim
from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.gpu import module_text
from symad.gpu.passes.recurrences import Recurrence, parts_of, steps_of
from symad.gpu.passes.row_programs import RowProgram
from symad.gpu.printers.printing import CuPyWriter
from symad.gpu.recurrences.kernel_text import ArgumentPlaces, recurrence_source, tile
from symad.gpu.recurrences.step import InnerProduct, LoopStep, step_of
from symad.numeric.numpy_arrays.pairs.attention_printer import tuple_text
from symad.numeric.numpy_arrays.statements import Made, computed, kernel_lines, results_by_number
from symad.numeric.program.expressions import Expression, op_in
from symad.numeric.targets.statements import Lines
from symad.ops.elementwise.selection import Condition

MAX_MATRIX_BYTES = 1 << 18
"""The most bytes of matrices that every block reads from the device's cache in every step.

Reading more would take longer than a launch, by an estimate from the width of that cache and published times
of launches; it has not been measured on a device.
"""

RUN = '''def _recurrence(source, made, moving, fixed, starts, matrices, steps, rows, tile, levels, joins):
    """The arrays of a loop: states (steps + 1, ...), values kept for all steps, values of one step."""
    for state, start in zip(made, starts):
        if start is not None:
            state[0] = start
    if not steps or not rows:
        return made
    arrays = [*zip(made, levels[1]), *((a, 1) for a in moving), *((a, 0) for a in fixed)]
    table = np.zeros(1, dtype=[("at", np.int64, (len(arrays), 6))])
    for row, (array, moves) in zip(table["at"][0], arrays):
        strides = [stride//array.itemsize for stride in array.strides]
        row[:2] = array.data.ptr, strides[0] if moves else 0
        row[2:2 + array.ndim - moves] = strides[moves:]
    columns, high, wide, shared = tile
    kernel = _module(source).get_function("recurrence")
    size, down, last = cp.int64(rows), -(-rows//high), levels[0]
    def run(across, first, end, start, stop, joined=0, begins=0):
        numbers = [cp.int64(first), cp.int64(end), *(cp.int32(n) for n in (start, stop, joined, begins))]
        kernel((down, across), (columns*high,), (table, size, *numbers), shared_mem=shared)
    if sum(a.nbytes for a in matrices) <= levels[2]:
        run(1, 0, steps, 0, last, begins=1)
        return made
    across = min(-(-wide//columns), 65535)
    run(1, 0, 0, 0, 0, begins=1)
    for t in range(steps):
        run(across, t, t + 1, 0, 1, joined=joins and t > 0)
        for level in range(1, last - joins):
            run(across, t, t + 1, level, level + 1)
    if joins:
        run(across, steps - 1, steps, last - 1, last)
    return made
'''


Moved = Sequence[tuple[Node, Expression]]
"""Inputs of a body, and the arrays that they stand for."""


@dataclass(frozen=True)
class KernelArrays:
    """The arrays of a kernel: results with stored values, inputs of the steps, constants.

    Attributes:
        step: the computation of one step.
        moving: the inputs of the steps that the kernel reads.
        fixed: the constants that it reads.
    """

    step: LoopStep
    moving: Moved
    fixed: Moved

    @classmethod
    def read(cls, step: LoopStep, moving: Moved, fixed: Moved) -> KernelArrays:
        """Those of these arrays that the kernel reads."""
        read: set[Node] = set()
        for leaf in (leaf for part in step.parts for _, leaf in step.used(part)):
            loads = (leaf.left, leaf.right) if isinstance(leaf, InnerProduct) else (leaf,)
            read |= {load.array for load in loads}
        some = ([(here, x) for here, x in part if here in read] for part in (moving, fixed))
        return cls(step, *some)

    def matrices(self) -> list[Expression]:
        """The constant factors of the products."""
        leaves = (leaf for part in self.step.parts for _, leaf in self.step.used(part))
        found = {leaf.right.array for leaf in leaves if isinstance(leaf, InnerProduct)}
        return [x for here, x in self.fixed if here in found]

    def places(self, outputs: Sequence[Node], states: Nodes, printer: CuPyWriter) -> ArgumentPlaces:
        """The numbers of the arrays; ``states`` are the inputs that are states, the first of the outputs."""
        results: dict[Node, list[tuple[int, int]]] = {}
        number: dict[Node, int] = {}
        for k, o in enumerate((*outputs, *self.step.stored)):
            results.setdefault(o, []).append((k, int(k < len(states))))
            number.setdefault(o, k)
        late = {o for o in outputs if number[o] < len(states)} - set(states)
        flags = {k for k, o in enumerate(outputs) if _is_flag(o)}
        number |= {state: k for k, state in enumerate(states)}
        for k, (here, x) in enumerate((*self.moving, *self.fixed), len(outputs) + len(self.step.stored)):
            number[here] = k
            if printer.kind(x) == "bool":
                flags.add(k)
        return ArgumentPlaces(number, results, frozenset(late), frozenset(flags))

    def call(
        self, outputs: Sequence[Node], states: Nodes, zeros: Sequence[int],
        starts: Sequence[Expression | None], steps: Dim | None, names: Sequence[str], printer: CuPyWriter,
    ) -> str:  # fmt: skip
        """The statement that computes all values, of ``steps`` steps or of one that has no axis of time."""
        step, count = self.step, len(outputs) + len(self.step.stored)
        moves = (steps is not None,) * len(outputs) + (False,) * len(step.stored)
        made = []
        for k, o in enumerate((*outputs, *step.stored)):
            lengths = [*([f"{printer.atom(steps)}{' + 1' * (k < len(states))}"] if moves[k] else [])]
            shape = tuple_text([*lengths, *map(printer.atom, o.shape)])
            kind = "bool" if k < len(outputs) and _is_flag(o) else printer.type_text
            made.append(f"cp.empty({shape}, dtype={kind})")
        rows: Dim = outputs[0].shape[0] if step.batched else 1
        widths = [(k, outputs[k].shape[-1] if len(outputs[k].shape) > step.batched else 1) for k in zeros]
        places = self.places(outputs, states, printer)
        arrays = count + len(self.moving) + len(self.fixed)
        source = recurrence_source(step, places, arrays, printer.dtype, rows, widths)
        columns, high = tile(step, rows)
        wide = max(part.width for part in step.parts)
        arguments = [
            printer.constant_source(source), _list(made),
            *(_list([printer.array_text(x) for _, x in part]) for part in (self.moving, self.fixed)),
            _list(["None" if a is None else printer.array_text(a) for a in starts]),
            _list([printer.array_text(x) for x in self.matrices()]),
            "1" if steps is None else printer.atom(steps), printer.atom(rows),
            f"({columns}, {high}, {wide}, {48 << 10})",
            f"({step.levels}, {tuple(map(int, moves))}, {MAX_MATRIX_BYTES})", str(int(step.joins())),
        ]  # fmt: skip
        printer.imports |= {"from functools import lru_cache", "import numpy as np"}
        printer.helper("_module", module_text.MODULE)
        printer.helpers.setdefault("_recurrence", RUN)
        targets = [*names, *["_"] * len(step.stored)]
        comma = "," if len(targets) == 1 else ""
        return f"{', '.join(targets)}{comma} = _recurrence({', '.join(arguments)})"


@kernel_lines.dispatch
def recurrence_lines(op: Recurrence, writer: CuPyWriter, made: Made) -> Lines:
    """The statement that computes all values of a loop."""
    args = computed(made).args
    initial, moving, fixed = parts_of(op, args)
    outputs, local = op.body.output_nodes, op.body.input_nodes
    inputs = (
        zip(local[op.states : op.states + op.slices], moving, strict=True),
        zip(local[op.states + op.slices :], fixed, strict=True),
    )
    arrays = KernelArrays.read(step_of(op.body, op.states), *map(list, inputs))
    results = {one.value: which for one in made if isinstance(which := op_in(one.expression), Recurrence)}
    read = {which.k for which in results.values()}
    names = [writer.value_name() if k in read else "_" for k in range(len(outputs))]
    for value, which in results.items():
        steps = ("[:-1]" if which.before else "[1:]") if which.k < op.states else ""
        writer.named[value] = names[which.k] + steps
        writer.kinds |= {value: "bool"} if _is_flag(outputs[which.k]) else {}
    zeros = [k for k in range(op.states) if op.zeros[k]]
    return [arrays.call(outputs, local[: op.states], zeros, initial, steps_of(op, args), names, writer)]


@kernel_lines.dispatch
def row_program_lines(op: RowProgram, writer: CuPyWriter, made: Made) -> Lines:
    """The statement that computes all values of a region of rows, by the kernel of a loop with one step."""
    outputs, results = op.body.output_nodes, results_by_number(made)
    given = [*zip(op.body.input_nodes, computed(made).args, strict=True)]
    arrays = KernelArrays.read(step_of(op.body, 0), [], given)
    names = writer.result_names(range(len(outputs)), results)
    writer.kinds |= {value: "bool" for k, value in results.items() if _is_flag(outputs[k])}
    return [arrays.call(outputs, (), (), (), None, names, writer)]


def _list(texts: list[str]) -> str:
    return f"[{', '.join(texts)}]"


def _is_flag(node: Node) -> bool:
    return isinstance(node.op, Condition)
