"""Plans are made here: the block of some nodes, its program, and the passes on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sympy

from symad.core.graph import Node
from symad.numeric.numpy_arrays.index_only_values import only_indices
from symad.numeric.numpy_arrays.plan import Plan
from symad.numeric.numpy_arrays.printing import Printing
from symad.numeric.pipelines import PassReport, run_program_passes
from symad.numeric.program.expressions import Value
from symad.numeric.program.program import Program
from symad.numeric.scheduling.blocks import block_of


def plan_of(
    printer: Printing,
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
    numbers = printer.row_numbers | only_indices(order, outputs)
    plan = Plan(block, block.program, numbers, users, outputs, printer.roles)
    printer.know(plan)
    made = run_program_passes(block.program, printer.passes(places), report, check=False)
    return replace(plan, program=made)


def plan_inside(
    printer: Printing,
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
        printer.roles = printer.roles.inside(results[0])
        plan = plan_of(printer, results, given, places)
    printer.bounds = around
    keys = (*given.values(), *(place for place in places if place is not None))
    printer.steps |= dict.fromkeys(keys, plan)
    return plan.program
