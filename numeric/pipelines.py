"""The pipelines of lowering, as lists: what runs in which order, what it needs, and what it ensures.

    Graph --graph passes--> Graph --schedule--> Program --program passes--> Program --print--> text

A pass keeps what the graph or program computes; each is tested alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import sympy

from symad.core.graph import Graph
from symad.numeric.passes import contract_sums, expand, hoist, keep, stabilize, sum_before_slicing
from symad.numeric.passes.algebra.definitions import write_scalar_definitions
from symad.numeric.passes.algebra.factors import gather_factors
from symad.numeric.passes.algebra.redundant_masks import drop_masks
from symad.numeric.passes.algebra.sums_of_broadcasts import broadcast_sums
from symad.numeric.passes.algebra.syrk_products import share_grams
from symad.numeric.passes.algebra.unit_contractions import as_outer_products
from symad.numeric.passes.algebra.unit_seeds import factor_seeds
from symad.numeric.passes.algebra.written_out import write_out
from symad.numeric.passes.blocking.batches import in_batches
from symad.numeric.passes.blocking.blocked_chains import in_chains
from symad.numeric.passes.blocking.blocked_products import block_products
from symad.numeric.passes.blocking.row_blocks import in_row_blocks
from symad.numeric.passes.loops.cancel_pads import drop_pads
from symad.numeric.passes.loops.feature_major import feature_major
from symad.numeric.passes.loops.flat_products import flatten_products
from symad.numeric.passes.loops.last_step import start_from_last_step
from symad.numeric.passes.loops.sink_into_loop import sink_large
from symad.numeric.passes.loops.split_state import in_parts as split_states
from symad.numeric.passes.loops.wide_products import widen_products
from symad.numeric.passes.memory_layout.joined_pads import join_pads
from symad.numeric.passes.memory_layout.overlapping_pads import overlay_pads
from symad.numeric.passes.memory_layout.packed_entries import pack_entries, pack_points
from symad.numeric.passes.memory_layout.sparse_results import lay_out_sparse
from symad.numeric.program.checking import check_program
from symad.numeric.program.expressions import Value
from symad.numeric.program.program import Program
from symad.numeric.program.statements import every_statement
from symad.numeric.program_passes.aliases import drop_aliases
from symad.numeric.program_passes.boxes import put_together
from symad.numeric.program_passes.by_twos import by_twos
from symad.numeric.program_passes.dead import drop_unread
from symad.numeric.program_passes.folding import fold
from symad.numeric.program_passes.inlining import inline
from symad.numeric.program_passes.levels import by_levels, in_parts
from symad.numeric.program_passes.places import write_over
from symad.numeric.program_passes.powers import multiply_powers
from symad.numeric.program_passes.recycling import keep_memory
from symad.numeric.program_passes.releases import release
from symad.numeric.program_passes.repeats import repeat_where_read
from symad.numeric.program_passes.result_places import put_results
from symad.numeric.program_passes.short_lines import shorten
from symad.numeric.program_passes.sparse_places import put_sparse
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


LOGISTIC = GraphPass("logistic", with_logistic, "", "1/(1 + exp(u)) is one function that does not overflow")
EXPAND = GraphPass(
    "expand", expand, "", "parts that derivatives share are computed once; numbers are numbers"
)
KEEP = GraphPass(
    "keep", keep, "", "what steps of a scan compute is kept, not computed again: scans are loops"
)
STABILIZE = GraphPass("stabilize", stabilize, "", "no form that loses digits where an equal one does not")
HOIST = GraphPass("hoist", hoist, "", "bodies of loops hold only what depends on their state")
LAST_STEP = GraphPass(
    "last step", start_from_last_step, "keep", "a cotangent of the last state is where its loop starts"
)
CONTRACT = GraphPass("contract", contract_sums, "", "sums of products are contractions of two operands")
DROP_PADS = GraphPass("drop pads", drop_pads, "keep", "zeros that are cut off again are not written")
FLAT_PRODUCTS = GraphPass(
    "flat products", flatten_products, "contract", "sums over several axes are matrix products"
)

WRITE_OUT = GraphPass("write out", write_out, "", "every op has a form in the target, or is a loop or a root")

PLAIN_GRAPH = (
    WRITE_OUT,
    LOGISTIC,
    EXPAND,
    KEEP,
    STABILIZE,
    HOIST,
    LAST_STEP,
    CONTRACT,
    GraphPass("join pads", join_pads, "", "what stands side by side is concatenated, not padded and added"),
    GraphPass("pack", pack_points, "", "arrays of scalars at the end of a scalar graph are one op each"),
)
"""Of `style="plain"`: mathematics alone, nothing for speed."""

ENTRY_GRAPH = (WRITE_OUT, LOGISTIC, EXPAND, STABILIZE, CONTRACT)
"""Of array graphs that are written out in scalars, before: what is recognised in arrays alone."""

ARRAY_GRAPH = (
    LOGISTIC,
    EXPAND,
    GraphPass("sum first", sum_before_slicing, "", "sums of equal slices of arrays are slices of a sum"),
    KEEP,
    STABILIZE,
    HOIST,
    LAST_STEP,
)
"""Of array graphs in NumPy, first."""

COMPILED_GRAPH = (LOGISTIC, EXPAND, KEEP, STABILIZE, HOIST)
"""Of array graphs with compiled kernels, first: their loops read piece by piece what others make whole."""

BLOCK_GRAPH = (
    GraphPass("seeds", factor_seeds, "", "derivatives are made of factors, not of unit seeds"),
    CONTRACT,
    GraphPass("biases", broadcast_sums, "", "what is repeated along the same axes is added before"),
    GraphPass("outer products", as_outer_products, "contract", "no sum over an axis of one element"),
    GraphPass("grams", share_grams, "contract", "Σ s a aᵀ with s ≥ 0 is a product of one array with itself"),
    GraphPass("factors", gather_factors, "contract", "numbers and signs of a product are one factor"),
    GraphPass("masks", drop_masks, "", "no mask on what is 0 there already"),
    GraphPass("row blocks", in_row_blocks, "contract", "arrays of pairs are made a block of rows at a time"),
    GraphPass("batches", in_batches, "contract", "batches of points stay in the cache: some rows at a time"),
    GraphPass("sparse results", lay_out_sparse, "", "parts of sparse matrices are spans of memory"),
    GraphPass("overlays", overlay_pads, "", "what overlaps is added where it stands, not padded"),
)
"""Of array graphs, however they are computed. Each pass says in its module where its threshold comes from."""

NUMPY_GRAPH = (
    DROP_PADS,
    GraphPass("feature major", feature_major, "keep", "loops over batches work on columns: gates are rows"),
    FLAT_PRODUCTS,
    GraphPass("sink", sink_large, "keep", "what one loop alone needs is computed in its steps"),
    GraphPass("chains", in_chains, "row blocks", "elementwise chains on large arrays go block by block"),
    GraphPass("parts of states", split_states, "keep", "parts of a state are states of their own"),
    GraphPass("wide products", widen_products, "keep", "W h + U x + b is one product in a step"),
    GraphPass("blocked products", block_products, "wide products", "copies for products stay in the cache"),
)
"""Of array graphs in NumPy, last: its functions work on whole arrays."""

KERNEL_GRAPH = (DROP_PADS, FLAT_PRODUCTS)
"""Of array graphs with compiled kernels, last."""

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
    LOGISTIC,
    GraphPass("definitions", write_scalar_definitions, "", "every op is a function of numbers"),
    GraphPass("expand", expand, "", "functions of numbers are numbers"),
    STABILIZE,
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


REPEATS = ProgramPass(
    "repeat where read", repeat_where_read, "", "what is repeated along axes has no array of its own"
)
BY_TWOS = ProgramPass(
    "by twos", by_twos, "write over", "elementwise statements have one or two operands, as NumPy's functions"
)


def in_place(
    dtype: str, in_steps: bool = False, places: Sequence[Value | None] = (), gathers: bool = False
) -> tuple[ProgramPass, ...]:
    """First of array code in NumPy, with no check: set-up time counts. The tests check each.

    The type of the module's numbers decides which functions write into arrays. ``in_steps``: the program is
    a step of a loop. ``places``: the rows of arrays where its results go. ``gathers``: entries of sparse
    matrices are gathered, which compiled code does faster than NumPy assigns with even steps.
    """
    parts = partial(put_sparse, dtype=dtype, always=gathers)
    sparse = ProgramPass("sparse", parts, "", "parts of sparse matrices are made where these read them")
    fill = partial(put_together, in_steps=in_steps)
    boxes = ProgramPass("fill", fill, "write over", "sums of padded arrays are arrays filled part by part")
    run = partial(write_over, dtype=dtype)
    over = ProgramPass("write over", run, "", "a result is written over an operand that ends, if its op can")
    put = ProgramPass("put", partial(put_results, places=places), "fill", "results are made where they stay")
    return REPEATS, sparse, over, boxes, put, BY_TWOS


def keeps_memory(itemsize: int, bounds: Mapping[sympy.Symbol, int]) -> ProgramPass:
    """Of array code in NumPy; sizes that change from step to step are at most their ``bounds``."""
    run = partial(keep_memory, itemsize=itemsize, bounds=bounds)
    return ProgramPass("keep memory", run, "by twos", "large arrays take memory that earlier calls had")


def releases(least: int) -> ProgramPass:
    """Last of all array code outside of loops, also of CuPy; ``least`` elements are worth a statement."""
    run = partial(release, least=least)
    return ProgramPass("release", run, "", "memory that ends is free where other memory is taken")


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
