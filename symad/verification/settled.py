"""Removes clips and branches that the domain of a claim decides: max(2⁻⁵², p) is p where 0.1 < p.

The domain bounds the inputs, and interval arithmetic bounds every value. A clip whose bound is never reached,
or a branch that is never taken, is removed, unless the alternative may be undefined.
"""

from __future__ import annotations

from symad.core.graph import Graph, topological
from symad.core.signatures import Where
from symad.evaluation.decided import can_be_decided, decided, taken
from symad.evaluation.value_ranges import promised
from symad.verification.claimed_domain import read_condition
from symad.verification.terms.rounded_constants import with_simple_constants
from symad.verification.values.boxes import Box, box_within
from symad.verification.values.ranges import ranges

REASON = "clips and branches that the domain rules out were left out, by intervals and not by the checker"


def box_of(graph: Graph, where: Where) -> Box:
    """The bounds of inputs that assumptions on symbols and the domain of a claim imply.

    Args:
        graph: a graph with these inputs.
        where: a condition on them, as `verify` takes it; None for none.
    """
    read = None if where is None else read_condition(graph, where)
    return promised(graph.input_nodes) if read is None else box_within(read, graph.input_nodes)


def settled(graph: Graph, box: Box) -> Graph:
    """The graph without the clips and branches that the box rules out; the same graph if there are none."""
    if not box or not any(map(can_be_decided, topological(graph.output_nodes))):
        return graph
    known = ranges(graph.output_nodes, box)
    return decided(graph, known, taken) if known else graph


def within(graph: Graph, box: Box, constants: str) -> Graph:
    """The graph without what a box rules out; floats are read as simple numbers before, if so requested."""
    return settled(with_simple_constants(graph)[0] if constants == "rounded" else graph, box)
