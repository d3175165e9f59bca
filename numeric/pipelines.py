"""The pipelines of lowering, as lists: what runs in which order, what it needs, and what it ensures.

    Graph --graph passes--> Graph --schedule--> Program --program passes--> Program --print--> text

A pass keeps what the graph or program computes; each is tested alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from symad.core.graph import Graph
from symad.numeric.passes import contract_sums, expand, hoist, keep, stabilize
from symad.numeric.passes.algebra.definitions import write_scalar_definitions
from symad.numeric.passes.algebra.written_out import write_out
from symad.numeric.passes.loops.last_step import start_from_last_step
from symad.numeric.passes.memory_layout.joined_pads import join_pads
from symad.numeric.passes.memory_layout.packed_entries import pack_entries, pack_points
from symad.numeric.program.checking import check_program
from symad.numeric.program.program import Program
from symad.numeric.program.statements import every_statement
from symad.numeric.program_passes.aliases import drop_aliases
from symad.numeric.program_passes.dead import drop_unread
from symad.numeric.program_passes.folding import fold
from symad.numeric.program_passes.inlining import inline
from symad.numeric.program_passes.levels import by_levels, in_parts
from symad.numeric.program_passes.powers import multiply_powers
from symad.numeric.program_passes.short_lines import shorten
from symad.numeric.program_passes.views import join_views
from symad.numeric.program_passes.wide import split_lines, split_wide
from symad.numeric.targets.c_functions import PACKED
from symad.stable import with_logistic


@dataclass(frozen=True)
class GraphPass:
    """A rewriting of the mathematics.

    Attributes:
        name: what ``--passes`` prints.
        run: Graph -> Graph of the same function.
        needs: what must be so before.
        ensures: what is so afterwards.
    """

    name: str
    run: Callable[[Graph], Graph]
    needs: str
    ensures: str


@dataclass(frozen=True)
class ProgramPass:
    """A rewriting of a program; the attributes are those of `GraphPass`."""

    name: str
    run: Callable[[Program], Program]
    needs: str
    ensures: str


PLAIN_GRAPH = (
    GraphPass("write out", write_out, "", "every op has a form in the target, or is a loop or a root"),
    GraphPass("logistic", with_logistic, "", "1/(1 + exp(u)) is one function that does not overflow"),
    GraphPass("expand", expand, "", "parts that derivatives share are computed once; numbers are numbers"),
    GraphPass("keep", keep, "",
              "what steps of a scan compute is kept, not computed again: scans are loops"),
    GraphPass("stabilize", stabilize, "", "no form that loses digits where an equal one does not"),
    GraphPass("hoist", hoist, "", "bodies of loops hold only what depends on their state"),
    GraphPass(
        "last step", start_from_last_step, "keep", "a cotangent of the last state is where its loop starts"
    ),
    GraphPass("contract", contract_sums, "", "sums of products are contractions of two operands"),
    GraphPass("join pads", join_pads, "", "what stands side by side is concatenated, not padded and added"),
    GraphPass("pack", pack_points, "", "arrays of scalars at the end of a scalar graph are one op each"),
)
"""Of `style="plain"`: mathematics alone, nothing for speed."""

PLAIN_PROGRAM = (
    ProgramPass("join views", join_views, "", "no slice of a slice"),
    ProgramPass("drop aliases", drop_aliases, "join views", "no value that is only another name"),
    ProgramPass("drop unread", drop_unread, "", "every statement is needed for a result"),
    ProgramPass("inline", inline, "drop unread", "one line for each mathematical step"),
    ProgramPass("fold", fold, "inline", "6*x, not 3*(2*x); numbers and rows join arrays as they are"),
    ProgramPass("join views again", join_views, "inline", "no slice of a slice in the lines that are new"),
    ProgramPass("split wide", split_wide, "inline", "no sum that is too long for CPython's compiler"),
    ProgramPass("drop unread again", drop_unread, "inline", "every statement is needed for a result"),
)
"""Of `style="plain"`."""

SCALAR_GRAPH = (
    GraphPass("logistic", with_logistic, "", "1/(1 + exp(u)) is one function that does not overflow"),
    GraphPass("definitions", write_scalar_definitions, "", "every op is a function of numbers"),
    GraphPass("expand", expand, "", "functions of numbers are numbers"),
    GraphPass("stabilize", stabilize, "", "no form that loses digits where an equal one does not"),
    GraphPass("pack", pack_entries, "definitions", "arrays of scalars at the end are one op each"),
)
"""Of scalar graphs, for every backend."""

SCALAR_PROGRAM = (
    ProgramPass("products", multiply_powers, "", "small powers are products"),
    ProgramPass("split wide", split_lines, "", "no sum that is too long for CPython's compiler"),
    ProgramPass("shorten", shorten, "products", "read once: stands where it is read; 6*x, not 3*(2*x)"),
)
"""Of straight-line Python, with no check in between: set-up time counts. The tests check each."""


C_PROGRAM = (
    ProgramPass("products", multiply_powers, "", "small powers are products"),
    ProgramPass("parts", in_parts, "products", "no function that compilers take long for"),
    ProgramPass(
        "levels", lambda program: by_levels(program, PACKED), "parts", "independent values side by side"
    ),
)
"""Of scalar graphs in C, where each op keeps a line: compilers join them."""


@dataclass(frozen=True)
class PassReport:
    """What one pass did: the number of nodes or statements before and after, and whether anything changed."""

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
    """The graph after all passes; ``report`` grows by a line for each."""
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
    """The program after all passes.

    Args:
        program: what `schedule` makes of a graph.
        passes: a pipeline.
        report: grows by a line for each pass.
        check: whether the program is checked before and after each pass.
    """
    if check:
        check_program(program)
    for step in passes:
        made = step.run(program)
        if check:
            check_program(made)
        if report is not None:
            changed = made != program
            report.append(PassReport(step.name, "statements", _count(program), _count(made), changed))
        program = made
    return program


def _count(program: Program) -> int:
    return sum(1 for _ in every_statement(program.statements))
