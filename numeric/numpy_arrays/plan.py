"""Plans of blocks of nodes: the program before and after the passes, and who reads which node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import sympy

from symad.core.graph import Node
from symad.numeric.numpy_arrays.index_only_values import only_indices
from symad.numeric.numpy_arrays.owners import owner
from symad.numeric.pipelines import PassReport, run_program_passes
from symad.numeric.program.expressions import Value
from symad.numeric.program.program import Program
from symad.numeric.program.uses import Lifetimes, lifetimes
from symad.numeric.program_passes.memory.allocation import keeping
from symad.numeric.scheduling.blocks import NodeBlock, block_of, sharing

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.printer import ArrayPrinter


@dataclass(frozen=True)
class Plan:
    """The program of a block of nodes, and what the printer knows about it.

    Attributes:
        block: the nodes as statements, with the value of each node.
        program: the program of the block after all passes.
        before: the program before them.
        numbers: nodes that are read as row numbers only.
        users: for each node the nodes that read it; a result counts as read by itself.
        lasting: nodes whose memory is never overwritten: results, and values from outside.
        outputs: the results.
    """

    block: NodeBlock
    program: Program
    before: Program
    numbers: set[Node]
    users: dict[Node, list[Node]]
    lasting: set[Node]
    outputs: Sequence[Node]

    @cached_property
    def lives(self) -> Lifetimes:
        """The lifetimes of the values before the passes; few programs need them."""
        return lifetimes(self.before, keeping(self.before))


def plan_of(
    printer: ArrayPrinter,
    outputs: Sequence[Node],
    given: Mapping[Node, Value | None],
    places: Sequence[Value | None],
    report: list[PassReport] | None = None,
) -> Plan:
    """The plan of the statements that compute ``outputs`` from the nodes ``given``, after all passes.

    ``places``: for each output the value of the array that it is written to; None for any array.
    """
    order = printer.order(outputs)
    block = block_of(order, outputs, given, stems=printer.label)
    users: dict[Node, list[Node]] = {}
    for node in order:
        for arg in node.args if node not in given else ():
            users.setdefault(arg, []).append(node)
    for node in outputs:
        users.setdefault(node, []).append(node)
    numbers = printer.row_numbers | only_indices(outputs)
    lasting = {owner(node) for node in (*outputs, *given)}
    plan = Plan(block, block.program, block.program, numbers, users, lasting, outputs)
    printer.know(plan)
    program = sharing(block, printer.laid_out_together(order))
    made = run_program_passes(program, printer.passes(places), report, check=False)
    return replace(plan, program=made, before=program)


def plan_inside(
    printer: ArrayPrinter,
    results: Sequence[Node],
    given: Mapping[Node, Value],
    places: Sequence[Value | None],
    bounds: Mapping[sympy.Symbol, int] | None = None,
    repeated: bool = True,
) -> Program:
    """The program of a step or of a function, see `MakesBody`; the printer keeps the plan for its lines."""
    around = printer.bounds
    with printer.as_before(), printer.inside({}, repeated):
        printer.bounds = around if bounds is None else bounds
        plan = plan_of(printer, results, given, places)
    printer.bounds = around
    printer.steps[next(iter(given.values()))] = plan
    return plan.program
