"""The NumPy backend: scalar graphs as straight-line code, array graphs as array statements."""

from __future__ import annotations

from symad.core.graph import Graph
from symad.numeric.backends import NUMPY
from symad.numeric.kernel import Kernel, compile_source
from symad.numeric.numpy_arrays.in_place_printer import InPlacePrinter
from symad.numeric.numpy_arrays.ops import mosaic  # noqa: F401  (register answers)
from symad.numeric.numpy_arrays.printer import print_array_module
from symad.numeric.passes import apply_before_slicing, contract_sums, expand, keep, prepare
from symad.numeric.passes.algebra.factors import gather_factors
from symad.numeric.passes.algebra.redundant_masks import drop_masks
from symad.numeric.passes.algebra.syrk_products import share_grams
from symad.numeric.passes.algebra.unit_contractions import as_outer_products
from symad.numeric.passes.algebra.unit_seeds import factor_seeds
from symad.numeric.passes.blocking.batches import in_batches
from symad.numeric.passes.blocking.blocked_chains import in_chains
from symad.numeric.passes.blocking.row_blocks import in_row_blocks
from symad.numeric.passes.loops.bias_as_row import fold_biases
from symad.numeric.passes.loops.cancel_pads import cut_sums, drop_pads
from symad.numeric.passes.loops.feature_major import feature_major
from symad.numeric.passes.loops.flat_products import flatten_products
from symad.numeric.passes.loops.last_step import start_from_last_step
from symad.numeric.passes.loops.sink_into_loop import sink_large
from symad.numeric.passes.loops.split_state import in_parts
from symad.numeric.passes.loops.wide_products import widen_products
from symad.numeric.passes.memory_layout.flat_stencils import flatten_stencils
from symad.numeric.passes.memory_layout.memory_spans import in_spans
from symad.numeric.passes.memory_layout.overlapping_pads import overlay_pads
from symad.numeric.passes.memory_layout.packed_entries import is_scalar, is_straight
from symad.numeric.scalars.lower_python import print_scalars
from symad.numeric.scheduling.roles import roles_of
from symad.ops.sparse.csr import CompressedRows
from symad.stable import with_logistic


def lower(graph: Graph, dtype: str, packed: bool) -> Kernel:
    """Print and compile a graph for NumPy."""
    straight = is_straight(graph)
    prepared = graph if straight else before_arrays(graph)
    if straight or is_scalar(prepared):
        name, source = print_scalars(prepared, dtype, packed)
    else:
        made = for_arrays(prepared)
        packed = False
        made = widen_products(in_parts(in_chains(sink_large(made))))
        labels = roles_of(graph, inner=False).labels
        name, source = print_array_module(made, NUMPY, dtype, InPlacePrinter, labels)
    return compile_source(name, source, packed)


def before_arrays(graph: Graph) -> Graph:
    """The passes that every graph goes through."""
    return start_from_last_step(prepare(keep(apply_before_slicing(expand(with_logistic(graph))))))


def for_arrays(graph: Graph) -> Graph:
    """The passes for graphs that hold arrays, where NumPy's functions work on whole arrays."""
    return fold_biases(flatten_products(feature_major(drop_pads(in_blocks(graph)))))


def in_blocks(graph: Graph) -> Graph:
    """The passes for graphs that hold arrays, however these are computed."""
    contracted = as_outer_products(contract_sums(factor_seeds(graph)))
    made = in_batches(in_row_blocks(drop_masks(gather_factors(share_grams(contracted)))))
    if any(isinstance(node.op, CompressedRows) for node in made.output_nodes):
        flat = flatten_stencils(made)
        made = flat if flat is not made else in_spans(cut_sums(made))
    return overlay_pads(made)
