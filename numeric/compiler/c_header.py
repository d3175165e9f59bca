"""The header of a C file: what a program that embeds it includes, with the layout of both arrays."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.dims import format_shape
from symad.core.graph import Graph, Node, Structure
from symad.numeric.modules.module_text import one_line
from symad.numeric.passes.memory_layout.packed_entries import scalars_of, stored_entries


def print_header(name: str, graph: Graph, labels: Sequence[str] = ()) -> str:
    """Prototypes, usable from C++, and where each input and output stands.

    Args:
        name: the C function.
        graph: a graph of scalars.
        labels: what its outputs are called, such as x_bar; by default the keys of dicts.
    """
    guard, sizes = f"{name.upper()}_H", [len(scalars_of(output)) for output in graph.output_nodes]
    return f"""\
#ifndef {guard}
#define {guard}
#include <stddef.h>
#include <stdint.h>

#define {name.upper()}_INPUTS {len(graph.input_nodes)}
#define {name.upper()}_OUTPUTS {sum(sizes)}

#ifdef __cplusplus
extern "C" {{
#endif

{_layout(graph, sizes, labels)}
void {name}(const double *x, double *y);

/* The same at many points: x[points][{name.upper()}_INPUTS], y[points][{name.upper()}_OUTPUTS]. */
void {name}_batch(const double *x, double *y, size_t points);

/* The same with the addresses of x and y in an array. */
void {name}_bound(const int64_t *frame);

#ifdef __cplusplus
}}
#endif
#endif
"""


def _layout(graph: Graph, sizes: list[int], labels: Sequence[str]) -> str:
    """A comment that says what each entry of x and y is."""
    inputs = [f"x[{k}] = {one_line(symbol)}" for k, symbol in enumerate(graph.inputs)]
    labels = labels or _keys(graph.structure)
    outputs, start = [], 0
    for number, (output, size) in enumerate(zip(graph.output_nodes, sizes, strict=True), 1):
        place = f"y[{start}]" if size == 1 else f"y[{start}..{start + size - 1}]" if size else "nothing"
        label = f": {one_line(labels[number - 1])}" if labels[number - 1] else ""
        outputs.append(f"{place} = output {number}{label}{_form(output)}")
        start += size
    return "\n".join(["/*", *(f"   {line}" for line in [*inputs, *outputs]), "*/"])


def _keys(structure: Structure) -> list[str]:
    """For each output the keys of the dicts that hold it, joined by dots."""
    if structure is None:
        return [""]
    keys = getattr(structure, "keys", [""] * len(structure.items))
    pairs = zip(keys, structure.items, strict=True)
    return [f"{key}.{inner}".strip(".") for key, item in pairs for inner in _keys(item)]


def _form(output: Node) -> str:
    """The shape of an output that is no scalar, and the order of its entries."""
    if stored_entries(output) is not None:
        return f", the stored entries of a sparse matrix {format_shape(output.shape)}, row by row"
    return f", shape {format_shape(output.shape)}, row by row" if output.shape else ""
