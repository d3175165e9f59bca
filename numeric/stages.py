"""Passes, and how a pipeline of them is built, checked, run and reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from symad.core.graph import Graph, Op
from symad.numeric.program.checking import check_program
from symad.numeric.program.program import Program
from symad.numeric.program.statements import every_statement


@dataclass(frozen=True)
class GraphPass:
    """A rewrite of a graph.

    Attributes:
        name: the name that ``--passes`` prints.
        run: makes a new graph of the same function.
        needs: the pass that must have run before, by name; empty if there is none.
        ensures: what is true of the graph afterwards.
    """

    name: str
    run: Callable[[Graph], Graph]
    needs: str
    ensures: str


@dataclass(frozen=True)
class ProgramPass:
    """A rewrite of a program; the first attributes are those of `GraphPass`.

    ``acts_on``: classes of ops; the pass is skipped if a program assigns the value of none. Empty: any op.
    """

    name: str
    run: Callable[[Program], Program]
    needs: str
    ensures: str
    acts_on: tuple[type[Op], ...] = ()


AnyPass = TypeVar("AnyPass", GraphPass, ProgramPass)


def in_order(passes: tuple[AnyPass, ...]) -> tuple[AnyPass, ...]:
    """The passes of a pipeline, each after the pass that it needs.

    Raises:
        ValueError: a pass needs another one that does not precede it.
    """
    seen = {""}
    for step in passes:
        if step.needs not in seen:
            raise ValueError(f"the pass {step.name!r} needs {step.needs!r} before it in its pipeline")
        seen.add(step.name)
    return passes


@dataclass(frozen=True)
class PassReport:
    """The effect of one pass: the number of nodes or statements before and after, and whether any changed."""

    name: str
    unit: str
    before: int
    after: int
    changed: bool

    def __str__(self) -> str:
        done = f"{self.before} -> {self.after} {self.unit}" if self.changed else "nothing to do"
        return f"{self.name}: {done}"


def run_graph_passes(
    graph: Graph, passes: Sequence[GraphPass], report: list[PassReport] | None = None
) -> Graph:
    """The graph after all passes; a line for each pass is appended to ``report``."""
    for step in passes:
        made = step.run(graph)
        if report is not None:
            changed = made.output_nodes != graph.output_nodes
            report.append(PassReport(step.name, "nodes", len(graph.nodes), len(made.nodes), changed))
        graph = made
    return graph


def run_program_passes(
    program: Program,
    passes: Sequence[ProgramPass],
    report: list[PassReport] | None = None,
    check: bool = True,
) -> Program:
    """The program after all passes; a line for each is appended to ``report``.

    ``check``: whether the program is checked before the passes and after each.
    """
    if check:
        check_program(program)
    for step in passes:
        acts = not step.acts_on or program.assigns(step.acts_on)
        made = step.run(program) if acts else program
        if check and made is not program:
            check_program(made)
        if report is not None:
            changed = made != program
            before, after = (sum(1 for _ in every_statement(p.statements)) for p in (program, made))
            report.append(PassReport(step.name, "statements", before, after, changed))
        program = made
    return program
