"""The pipelines of lowering, as lists of passes: their order, what each one needs, and what it ensures.

    Graph --graph passes--> Graph --schedule--> Program --program passes--> Program --print--> text

A pass never changes the function that a graph or a program computes. Each pass is tested alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import sympy

from symad.core.graph import Graph, Node
from symad.cost import schedule
from symad.higher_order.scan import LoopOp
from symad.numeric.expressions.folding import fold, multiply_powers
from symad.numeric.expressions.views import join_views
from symad.numeric.passes import contract_sums, expand, keep, stabilize, sum_before_slicing
from symad.numeric.passes.algebra.definitions import write_out, write_scalar_definitions
from symad.numeric.passes.algebra.factors import gather_factors
from symad.numeric.passes.algebra.redundant_masks import drop_masks
from symad.numeric.passes.algebra.syrk_products import flatten_products, share_grams
from symad.numeric.passes.algebra.unit_seeds import factor_seeds
from symad.numeric.passes.blocking.batches import in_batches
from symad.numeric.passes.blocking.row_blocks import in_row_blocks
from symad.numeric.passes.bodies import RowBlocks
from symad.numeric.passes.loops.feature_major import feature_major
from symad.numeric.passes.loops.sink_into_loop import sink_large
from symad.numeric.passes.loops.split_state import in_parts as split_states
from symad.numeric.passes.loops.zeros import drop_pads, start_from_last_step
from symad.numeric.passes.memory_layout.memory_spans import lay_out_sparse
from symad.numeric.passes.memory_layout.packed_entries import pack_entries, pack_points
from symad.numeric.passes.memory_layout.pads import Overlay, broadcast_sums, join_pads, overlay_pads
from symad.numeric.program.expressions import Value
from symad.numeric.program.program import Program
from symad.numeric.program_passes.lines.by_twos import by_twos, repeat_where_read
from symad.numeric.program_passes.lines.inlining import drop_aliases, inline, join_slices
from symad.numeric.program_passes.lines.scalar_lines import (
    by_levels,
    in_parts,
    shorten,
    split_lines,
    split_wide,
)
from symad.numeric.program_passes.loops.loop_layout import lay_out_together
from symad.numeric.program_passes.loops.open_bodies import CALLING, open_blocks, open_functions
from symad.numeric.program_passes.loops.open_loops import Compiles, MakesBody, open_loops
from symad.numeric.program_passes.memory.boxes import put_together
from symad.numeric.program_passes.memory.dead import drop_unread
from symad.numeric.program_passes.memory.result_places import put_results
from symad.numeric.program_passes.memory.reuse import keep_memory, release, write_over
from symad.numeric.program_passes.memory.sparse_places import put_sparse
from symad.numeric.scheduling.plans import block_of
from symad.numeric.stages import GraphPass as GraphPass
from symad.numeric.stages import PassReport as PassReport
from symad.numeric.stages import ProgramPass as ProgramPass
from symad.numeric.stages import in_order
from symad.numeric.stages import run_graph_passes as run_graph_passes
from symad.numeric.stages import run_program_passes as run_program_passes
from symad.numeric.targets.c_functions import PACKED
from symad.ops.basic.shaping import Broadcast, Pad, Reshape
from symad.ops.elementwise.selection import Select
from symad.ops.sparse.csr import CompressedRows

if TYPE_CHECKING:
    from symad.numeric.scheduling.plans import Plans

EXPAND = GraphPass(
    "expand", expand, "", "f and its derivative share common parts; functions of constants are constants"
)
KEEP = GraphPass(
    "keep",
    keep,
    "",
    "scans are loops of what depends on their states; values read elsewhere are kept",
)
STABILIZE = GraphPass("stabilize", stabilize, "", "forms that lose digits are replaced by stable equal ones")
LAST_STEP = GraphPass(
    "last step", start_from_last_step, "keep", "a loop starts at its cotangent, if only the last step has one"
)
CONTRACT = GraphPass("contract", contract_sums, "", "sums of products are contractions of two operands each")
DROP_PADS = GraphPass("drop pads", drop_pads, "keep", "no zeros are written that a slice cuts off again")
FLAT_PRODUCTS = GraphPass(
    "flat products", flatten_products, "contract", "contractions over several axes are matrix products"
)

WRITE_OUT = GraphPass("write out", write_out, "", "every op is a loop, a root, or printable for the target")

PLAIN_GRAPH = (
    WRITE_OUT,
    EXPAND,
    KEEP,
    STABILIZE,
    LAST_STEP,
    CONTRACT,
    GraphPass("join pads", join_pads, "", "adjacent parts are concatenated, not padded and added"),
    GraphPass("pack", pack_points, "", "each array of scalars that a scalar graph returns is one op"),
)
"""Graph passes of `style="plain"`. None of them serves speed alone."""

ENTRY_GRAPH = (WRITE_OUT, EXPAND, STABILIZE, CONTRACT)
"""Graph passes before an array graph is written out in scalars: their patterns show in arrays only."""

ARRAY_GRAPH = (
    EXPAND,
    GraphPass("sum first", sum_before_slicing, "", "a sum of equal slices is a slice of the arrays' sum"),
    KEEP,
    STABILIZE,
    LAST_STEP,
)
"""The first graph passes for array graphs in NumPy."""

COMPILED_GRAPH = (EXPAND, KEEP, STABILIZE)
"""The first graph passes for array graphs with compiled kernels.

`sum first` and `last step` are left out: compiled loops read slices element by element, NumPy whole arrays.
"""

BLOCK_GRAPH = (
    GraphPass("seeds", factor_seeds, "", "derivatives are products of factors; no unit seed is written out"),
    CONTRACT,
    GraphPass("biases", broadcast_sums, "", "terms are added before they are broadcast along the same axes"),
    GraphPass("grams", share_grams, "contract", "Σ s a aᵀ with s ≥ 0 is a product of one array with itself"),
    GraphPass("factors", gather_factors, "contract", "the numbers and signs in a product are one factor"),
    GraphPass("masks", drop_masks, "", "no mask is applied to elements that are zero already"),
    GraphPass("row blocks", in_row_blocks, "contract", "arrays of pairs are computed in blocks of rows"),
    GraphPass("batches", in_batches, "contract", "batches are computed in blocks of rows that fit the cache"),
    GraphPass("sparse results", lay_out_sparse, "", "the parts of sparse matrices are spans of memory"),
    GraphPass("overlays", overlay_pads, "", "overlapping terms of a sum are added in place, without padding"),
)
"""Graph passes for array graphs, with or without compiled kernels.

The module of each pass says where its thresholds come from.
"""

NUMPY_GRAPH = (
    DROP_PADS,
    GraphPass("feature major", feature_major, "keep", "in loops over batches a gate is contiguous in memory"),
    FLAT_PRODUCTS,
    GraphPass("sink", sink_large, "keep", "elementwise work that one loop alone reads is done in its steps"),
    GraphPass("parts of states", split_states, "keep", "each part of a loop's state is a state of its own"),
)
"""The last graph passes for array graphs in NumPy, whose functions work on whole arrays."""

KERNEL_GRAPH = (DROP_PADS, FLAT_PRODUCTS)
"""The last graph passes for array graphs with compiled kernels."""

PLAIN_PROGRAM = (
    ProgramPass("join views", join_views, "", "no statement takes a slice of a slice"),
    ProgramPass("drop aliases", drop_aliases, "join views", "no statement only gives a value a second name"),
    ProgramPass("drop unread", drop_unread, "", "every statement is needed for a result"),
    ProgramPass("inline", inline, "drop unread", "each mathematical step is one line"),
    ProgramPass("fold", fold, "inline", "constants are multiplied: 6*x, not 3*(2*x); NumPy broadcasts rows"),
    ProgramPass("split wide", split_wide, "inline", "no sum is too long for CPython's compiler"),
    ProgramPass("drop unread again", drop_unread, "inline", "every statement is needed for a result"),
)
"""Program passes of `style="plain"`."""

SCALAR_GRAPH = (
    GraphPass("definitions", write_scalar_definitions, "", "every op is a function of numbers"),
    GraphPass("expand", expand, "", "functions of constants are constants"),
    STABILIZE,
    GraphPass("pack", pack_entries, "definitions", "each array of scalars that the graph returns is one op"),
)
"""Graph passes for scalar graphs, on every backend."""

SCALAR_PROGRAM = (
    ProgramPass("products", multiply_powers, "", "small integer powers are products"),
    ProgramPass("split wide", split_lines, "", "no sum is too long for CPython's compiler"),
    ProgramPass("shorten", shorten, "products", "values read once are inlined; 6*x, not 3*(2*x)"),
)
"""Program passes for straight-line Python.

The program is not checked between them, because set-up time counts; the tests check it after each pass.
"""

C_PROGRAM = (
    ProgramPass("products", multiply_powers, "", "small integer powers are products"),
    ProgramPass("parts", in_parts, "products", "no function is so long that C compilers are slow on it"),
    ProgramPass(
        "levels", lambda program: by_levels(program, PACKED), "parts", "independent values are neighbors"
    ),
)
"""Program passes for scalar graphs in C. Each op keeps a line of its own: C compilers combine them."""


LOOPS = (LoopOp,)
LAY_OUT = ProgramPass(
    "lay out", lay_out_together, "", "the values of a loop that share an array are marked", LOOPS
)
REPEATS = ProgramPass(
    "repeat where read", repeat_where_read, "", "a broadcast has no array of its own", (Broadcast, Select)
)
BY_TWOS = ProgramPass(
    "by twos", by_twos, "write over", "elementwise statements are NumPy functions of one or two operands"
)


def in_place(
    dtype: str,
    in_steps: bool = False,
    places: Sequence[Value | None] = (),
    gathers: bool = False,
    body: MakesBody | None = None,
    compiles: Compiles = lambda value: False,
) -> tuple[ProgramPass, ...]:
    """The first program passes for array code in NumPy.

    The program is not checked between them, because set-up time counts; the tests check it after each pass.

    Args:
        dtype: the type of the module's numbers; it decides which functions can write into arrays.
        in_steps: whether the program is a step of a loop.
        places: the rows of arrays that the results are written to.
        gathers: whether entries of sparse matrices are gathered. Compiled code gathers faster than NumPy
            assigns to slices with even steps.
        body: makes the steps of loops; by default these passes alone.
        compiles: whether the loop that computes a value is compiled.
    """
    parts = partial(put_sparse, dtype=dtype, always=gathers)
    told = "parts of sparse matrices are computed where these read them"
    sparse = ProgramPass("sparse", parts, "", told, (CompressedRows,))
    fill = partial(put_together, in_steps=in_steps)
    told = "a sum of padded arrays is one array filled part by part"
    boxes = ProgramPass("fill", fill, "write over", told, (Pad, Overlay))
    run = partial(write_over, dtype=dtype)
    over = ProgramPass(
        "write over", run, "", "a result is written over an operand that is not read again, if its op can"
    )
    run = partial(put_results, places=places)
    put = ProgramPass("put", run, "fill", "results are computed in the memory where they stay")
    step = body or partial(_step, dtype=dtype, gathers=gathers)
    run = partial(open_loops, body=step, compiles=compiles)
    told = "loops are statements; steps write values where they stay"
    loops = ProgramPass("loops", run, "lay out", told, LOOPS)
    run = partial(open_blocks, body=step)
    blocks = ProgramPass("blocks", run, "", "loops over blocks of rows are statements", (RowBlocks,))
    return in_order((LAY_OUT, REPEATS, sparse, over, boxes, put, BY_TWOS, loops, blocks))


def _step(
    results: Sequence[Node],
    given: Mapping[Node, Value],
    places: Sequence[Value | None],
    bounds: Mapping[sympy.Symbol, int] | None = None,
    repeated: bool = True,
    *,
    dtype: str,
    gathers: bool,
) -> Program:
    """The program of a step of a loop; see `MakesBody`."""
    program = block_of(schedule(Graph((), tuple(results))), results, given).program
    return run_program_passes(program, in_place(dtype, repeated, places, gathers), check=False)


def functions(body: MakesBody, prepared: Callable[[Graph], Graph], sparse: bool = False) -> ProgramPass:
    """A late pass for array code; see `open_functions`."""
    run = partial(open_functions, body=body, prepared=prepared, sparse=sparse)
    return ProgramPass("functions", run, "", "the functions that ops call are statements", CALLING)


def loops_alone(places: Sequence[Value | None], body: MakesBody) -> tuple[ProgramPass, ...]:
    """The first program passes for CuPy, which allocates the result of each statement; see `in_place`."""
    run = partial(put_results, places=places, parts="none")
    put = ProgramPass("put", run, "", "results are copied to the memory where they stay")
    run = partial(open_loops, body=body, kept=False)
    return LAY_OUT, put, ProgramPass("loops", run, "lay out", "loops are statements", LOOPS)


def keeps_memory(itemsize: int, bounds: Mapping[sympy.Symbol, int]) -> ProgramPass:
    """A late pass for array code in NumPy; ``bounds`` bound the sizes that change from step to step."""
    run = partial(keep_memory, itemsize=itemsize, bounds=bounds)
    return ProgramPass("keep memory", run, "by twos", "large arrays reuse the memory of earlier calls")


DROP = ProgramPass("drop", drop_unread, "loops", "every statement is needed for a result")
"""Runs after the loops are statements, which read less than the ops they come from.

It and `JOIN_SLICES` take no time from calls; they save readers lines.
"""

JOIN_SLICES = ProgramPass(
    "join slices", join_slices, "", "a slice that only loses axes of length 1 has no statement", (Reshape,)
)


def releases(least: int) -> ProgramPass:
    """The last pass for array code outside of loops, on NumPy and CuPy.

    ``least`` is the number of elements from which an array is released by a statement.
    """
    run = partial(release, least=least)
    return ProgramPass(
        "release", run, "", "memory that is not read again is released before other memory is allocated"
    )


def array_program(
    dtype: str,
    plans: Plans,
    places: Sequence[Value | None],
    called: ProgramPass,
    gathers: bool = False,
    compiles: Compiles = lambda value: False,
) -> tuple[ProgramPass, ...]:
    """All program passes for array code in NumPy, also with compiled kernels; see `in_place`.

    ``plans`` are those of the module, which know the loops around; ``called`` is a pass of `functions`.
    """
    made = in_place(dtype, bool(plans.depth), places, gathers, plans.step, compiles)
    kept = keeps_memory(np.dtype(dtype).itemsize, plans.bounds)
    return in_order((*made, kept, called, DROP, JOIN_SLICES, *_freed(plans)))


def device_program(
    plans: Plans, places: Sequence[Value | None], called: ProgramPass
) -> tuple[ProgramPass, ...]:
    """All program passes for CuPy."""
    return in_order((*loops_alone(places, plans.step), called, DROP, JOIN_SLICES, *_freed(plans)))


def _freed(plans: Plans) -> tuple[ProgramPass, ...]:
    return () if plans.nesting else (releases(plans.least_freed),)


GRAPH_PIPELINES = {
    "plain": in_order(PLAIN_GRAPH),
    "scalars": in_order(SCALAR_GRAPH),
    "numpy": in_order((*ARRAY_GRAPH, *BLOCK_GRAPH, *NUMPY_GRAPH)),
    "c": in_order((*COMPILED_GRAPH, *BLOCK_GRAPH, *KERNEL_GRAPH)),
    "entries": in_order(ENTRY_GRAPH),
}
"""The graph passes of each kind of code, in order; those of `symad.numeric.passes.ranges` follow.

Runs are planned from the graph of "scalars". Code for CuPy begins with `symad.numeric.passes.prepare`;
the kernels of the device are chosen in `symad.gpu.passes`.
"""

PROGRAM_PIPELINES = {
    "plain": in_order(PLAIN_PROGRAM),
    "scalars": in_order(SCALAR_PROGRAM),
    "scalars in C": in_order(C_PROGRAM),
}
"""The program passes of each kind of code; for arrays see `array_program` and `device_program`."""

GAINS = {
    "sum first": "1.1 gradient of an LSTM written gate by gate",
    "last step": "1.14 gradient of the last state of an RNN of 16 units",
    "seeds": "5.7 Hessian of a softmax; 2.6 Hessians at many points",
    "biases": "1.06 the same",
    "grams": "1.6 Hessian of a logistic regression",
    "factors": "1.2 sparse Hessian of a grid energy; 1.12 gradient of a layer norm in C",
    "masks": "1.05 gradient of a causal transformer block of 1024 tokens, which takes 0.8 of the memory",
    "row blocks": "1.7 product with the Hessian of an RBF model; 1.4 gradient of attention",
    "batches": "1.16 functions of four million numbers; 5 to 8 batches of dense matrices of pairs",
    "sparse results": "1.13 sparse Hessian of a grid energy",
    "overlays": "1.6 gradient of overlapping stencils",
    "drop pads": "1.05 gradient of an LSTM",
    "feature major": "1.3 gradient of an LSTM of 16 units, 128 sequences",
    "flat products": "1.13 gradient of an LSTM",
    "sink": "1.17 gradient of an LSTM of 128 units, 64 sequences",
    "parts of states": "1.1 gradient of an LSTM",
    "repeat where read": "1.1 pair sums of numbers",
    "sparse": "2.3 sparse Hessian of a grid energy",
    "fill": "1.8 gradient of overlapping stencils",
    "keep memory": "1.5 gradient of a layer norm of 4096 rows of 1024, in a process of its own",
    "release": "1.13 gradient of an autoregression",
}
"""For each pass that serves speed alone, CPU time of calls without it over the time with it.

The largest ratios of a hundred rows, interleaved, on an x86 server, in NumPy and in C; most of the rows are
in benchmarks/arrays/bench_passes.py.
"""
