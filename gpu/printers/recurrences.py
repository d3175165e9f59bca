"""Loops over time in CuPy code: one kernel, launched once if its matrices are small, else once per step."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.dims import Dim
from symad.core.graph import Node
from symad.gpu import module_text
from symad.gpu.passes.row_programs import RowProgram
from symad.gpu.printers.kernels import verbatim
from symad.gpu.printers.printing import CuPyWriter
from symad.gpu.recurrences.elements import InnerProduct
from symad.gpu.recurrences.kernel_text import ArgumentPlaces, recurrence_text, tile
from symad.gpu.recurrences.recurrence import Recurrence, parts_of, steps_of
from symad.gpu.recurrences.step import LoopStep, step_of
from symad.numeric.targets.statements import Lines
from symad.ops.elementwise.selection import Condition, Logic

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


def recurrence_lines(op: Recurrence, node: Node, printer: CuPyWriter) -> Lines:
    """The statement that computes all values of a loop."""
    return _LoopWriter(op, node, printer).lines()


Moved = Sequence[tuple[Node, Node]]


class _LoopWriter:
    """Writes one loop into a module."""

    def __init__(self, op: Recurrence, node: Node, printer: CuPyWriter) -> None:
        self.op, self.node, self.printer = op, node, printer
        self.step: LoopStep = step_of(op.body, op.states)
        self.initial, self.moving, self.fixed = parts_of(op, node.args)
        local = op.body.input_nodes
        self.local_moving = local[op.states : op.states + op.slices]
        self.local_fixed = local[op.states + op.slices :]
        used = {leaf for part in self.step.parts for _, leaf in self.step.used(part)}
        products = [leaf for leaf in used if isinstance(leaf, InnerProduct)]
        self.matrices = {leaf.right.array for leaf in products}
        self.read = self.matrices | {leaf.left.array for leaf in products}
        self.read |= {leaf.array for leaf in used if not isinstance(leaf, InnerProduct)}

    def value(self, k: int, before: bool = False) -> Node:
        """A value of the loop."""
        op = self.op
        return Node.of(Recurrence(op.body, op.slices, k, op.zeros, op.kept, before), self.node.args)

    def lines(self) -> list[str]:
        op, printer, step = self.op, self.printer, self.step
        outputs = op.body.output_nodes
        values = [(self.value(k), self.value(k, True)) for k in range(len(outputs))]
        read = [any(value in printer.read for value in pair) for pair in values]
        names = [printer.value_name() if each else "_" for each in read]
        kinds = [printer.kernels.dtype if not _is_flag(o) else "bool" for o in outputs]
        steps = printer.atom(steps_of(op, self.node.args))
        made = [
            f"cp.empty(({steps}{' + 1' * (k < op.states)}, {', '.join(map(printer.atom, o.shape))}), "
            f"dtype={'bool' if kinds[k] == 'bool' else printer.type_text})"
            for k, o in enumerate(outputs)
        ]
        made += [f"cp.empty({printer.dims(n.shape)}, dtype={printer.type_text})" for n in step.stored]
        moves = [1] * len(outputs) + [0] * len(step.stored)
        moving, fixed = (
            [(here, x) for here, x in zip(local, arrays, strict=True) if here in self.read]
            for local, arrays in ((self.local_moving, self.moving), (self.local_fixed, self.fixed))
        )
        places, count = self._places(moving, fixed)
        rows: Dim = outputs[0].shape[0] if step.batched else 1
        zeros = [
            (k, outputs[k].shape[-1] if len(outputs[k].shape) > step.batched else 1)
            for k in range(op.states)
            if op.zeros[k]
        ]
        source = recurrence_text(step, places, count, printer.dtype, rows, zeros)
        text = printer.constant_source(verbatim(source))
        columns, high = tile(step, rows)
        wide = max(part.width for part in step.parts)
        arguments = [
            text, f"[{', '.join(made)}]", _list([printer.array_text(x) for _, x in moving]),
            _list([printer.array_text(x) for _, x in fixed]),
            _list(["None" if a is None else printer.array_text(a) for a in self.initial]),
            _list([printer.array_text(x) for here, x in fixed if here in self.matrices]),
            steps, printer.atom(rows), f"({columns}, {high}, {wide}, {48 << 10})",
            f"({step.levels}, {tuple(moves)}, {MAX_MATRIX_BYTES})", str(int(step.joins())),
        ]  # fmt: skip
        printer.imports |= {"from functools import lru_cache", "import numpy as np"}
        printer.helper("_module", module_text.MODULE)
        printer.helpers.setdefault("_recurrence", RUN)
        for k, (name, (value, before)) in enumerate(zip(names, values, strict=True)):
            if read[k]:
                printer.texts[value] = f"{name}[1:]" if k < op.states else name
                printer.texts |= {before: f"{name}[:-1]"} if k < op.states else {}
            if kinds[k] == "bool":
                printer.kernels.types[value] = "bool"
        spare = ["_"] * len(step.stored)
        targets = ", ".join([*names, *spare])
        comma = "," if len(names) + len(spare) == 1 else ""
        return [f"{targets}{comma} = _recurrence({', '.join(arguments)})"]

    def _places(self, moving: Moved, fixed: Moved) -> tuple[ArgumentPlaces, int]:
        """The numbers of the arrays: results, stored values, inputs of the steps, constants."""
        op, outputs = self.op, self.op.body.output_nodes
        results: dict[Node, list[tuple[int, int]]] = {}
        number: dict[Node, int] = {}
        for k, o in enumerate(outputs):
            results.setdefault(o, []).append((k, int(k < op.states)))
            number.setdefault(o, k)
        late = frozenset(o for o in outputs if number[o] < op.states)
        for k, o in enumerate(self.step.stored):
            results[o], number[o] = [(len(outputs) + k, 0)], len(outputs) + k
        number |= dict(zip(op.body.input_nodes, range(op.states), strict=False))
        count = len(outputs) + len(self.step.stored)
        flags = {k for k, o in enumerate(outputs) if _is_flag(o)}
        for here, x in (*moving, *fixed):
            number[here] = count
            if self.printer.kernels.type_of(x) == "bool":
                flags.add(count)
            count += 1
        late -= set(op.body.input_nodes)
        return ArgumentPlaces(number, results, late, frozenset(flags)), count


def _list(texts: list[str]) -> str:
    return f"[{', '.join(texts)}]"


def _is_flag(node: Node) -> bool:
    return isinstance(node.op, (Condition, Logic))


def row_program_lines(op: RowProgram, node: Node, printer: CuPyWriter) -> Lines:
    """The statement that computes all values of a region of rows, by the kernel of a loop with one step."""
    step, outputs = step_of(op.body, 0), op.body.output_nodes
    used = {leaf for part in step.parts for _, leaf in step.used(part)}
    products = [leaf for leaf in used if isinstance(leaf, InnerProduct)]
    matrices = {leaf.right.array for leaf in products}
    read = matrices | {leaf.left.array for leaf in products}
    read |= {leaf.array for leaf in used if not isinstance(leaf, InnerProduct)}
    given = [(here, x) for here, x in zip(op.body.input_nodes, node.args, strict=True) if here in read]
    results = {o: [(k, 0)] for k, o in enumerate((*outputs, *step.stored))}
    number = {o: k for k, o in enumerate((*outputs, *step.stored, *(here for here, _ in given)))}
    kinds = [printer.kernels.type_of(x) for _, x in given]
    flags = {k for k, o in enumerate(outputs) if _is_flag(o)}
    flags |= {len(results) + k for k, kind in enumerate(kinds) if kind == "bool"}
    places = ArgumentPlaces(number, results, frozenset(), frozenset(flags))
    rows: Dim = outputs[0].shape[0] if step.batched else 1
    source = recurrence_text(step, places, len(number), printer.dtype, rows, [])
    text = printer.constant_source(verbatim(source))
    columns, high = tile(step, rows)
    made = [
        f"cp.empty({printer.dims(o.shape)}, dtype={'bool' if _is_flag(o) else printer.type_text})"
        for o in (*outputs, *step.stored)
    ]
    wide = max(part.width for part in step.parts)
    arguments = [
        text, _list(made), "[]", _list([printer.array_text(x) for _, x in given]), "[]",
        _list([printer.array_text(x) for here, x in given if here in matrices]),
        "1", printer.atom(rows), f"({columns}, {high}, {wide}, {48 << 10})",
        f"({step.levels}, {(0,) * len(made)}, {MAX_MATRIX_BYTES})", "0",
    ]  # fmt: skip
    printer.imports |= {"from functools import lru_cache", "import numpy as np"}
    printer.helper("_module", module_text.MODULE)
    printer.helpers.setdefault("_recurrence", RUN)
    names = printer.result_names(range(len(outputs)))
    printer.kernels.types |= {v: "bool" for k, v in printer.computed.items() if _is_flag(outputs[k])}
    targets = [*names, *["_"] * len(step.stored)]
    comma = "," if len(targets) == 1 else ""
    return [f"{', '.join(targets)}{comma} = _recurrence({', '.join(arguments)})"]
