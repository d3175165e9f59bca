"""Decides if two expressions, graphs or structures of them are the same function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symad.core.graph import Graph
from symad.core.signatures import Inputs, Traceable
from symad.core.structures import DataclassOf, DictOf, leaves, paths
from symad.errors import TraceError
from symad.verification.budget import Budget
from symad.verification.certificate.assumptions import trusted
from symad.verification.certificate.certificate import Certificate, Comparison
from symad.verification.claims import fit, with_inputs_of
from symad.verification.decide import decide
from symad.verification.outside import as_decidable, refuse_free_sizes, undecided_outside

if TYPE_CHECKING:
    pass


@undecided_outside
def equal(
    a: Traceable,
    b: Traceable,
    seed: int | None = None,
    budget: Budget | None = None,
    inputs: Inputs | None = None,
) -> Certificate:
    """Decides if two things are equal as real functions of their symbols.

    Equal means: the same values on the open dense set where both are defined, under the assumptions of the
    symbols. Floats stand for their exact binary values. Ties and branch boundaries do not count.

    Args:
        a: what `trace` takes: an expression, matrix, array, graph, lists of them, or a Python function.
        b: the same; inputs are matched by symbol, or by name and position for graphs.
        seed: for the random primes; a new one by default, always recorded.
        budget: limits of time and size.
        inputs: the arguments of both sides, as in `trace`; Python functions need them.

    Returns:
        A `Certificate` with one entry for each element.

    Raises:
        ShapeError: the shapes differ.

    Example:
        >>> import sympy, symad
        >>> x = sympy.Symbol("x", real=True)
        >>> symad.equal(sympy.cos(2 * x), 1 - 2 * sympy.sin(x) ** 2).status
        'proved'
    """
    left, right = as_decidable(a, inputs=inputs), as_decidable(b, inputs=inputs)
    if len(left.output_nodes) != len(right.output_nodes):
        raise TraceError(
            f"equal: one side has {len(left.output_nodes)} outputs, the other {len(right.output_nodes)}"
        )
    right = with_inputs_of(left, right)
    left = with_inputs_of(right, left) if right.dims - left.dims else left
    refuse_free_sizes("equal", left, right)
    right = right.with_outputs(
        [fit(y, x) for y, x in zip(right.output_nodes, left.output_nodes, strict=True)], right.structure
    )
    comparison = Comparison(
        "equality",
        left,
        right,
        value_names(left),
        trusted(left, right, derivatives=False),
        "the left side",
        "the right side",
    )
    return decide("equality", [comparison], seed, budget)


def value_names(graph: Graph) -> tuple[str, ...]:
    """The names of the outputs of a graph: "value", "value 1" of several, ``value['loss']`` of a dict."""
    count, structure = len(graph.output_nodes), graph.structure
    if structure is None or leaves(structure) != count or not isinstance(structure, (DictOf, DataclassOf)):
        return ("value",) if count == 1 else tuple(f"value {k}" for k in range(count))
    return tuple(f"value{path}" for path in paths(structure))
