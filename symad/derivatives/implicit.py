"""Implicit functions: x(θ) defined by F(x, θ) = 0, as a graph that can be differentiated."""

from __future__ import annotations

from collections.abc import Callable

import sympy

from symad.core.arrays import Number
from symad.core.dims import Dim, plus, size
from symad.core.graph import Graph, Node, rebuild
from symad.core.process import without_collecting
from symad.core.signatures import Inputs
from symad.derivatives.root import root
from symad.errors import DerivativeError
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.shaping import flatten, reshape, slice_axis
from symad.ops.basic.sources import input_node, symbol_of
from symad.tracing import as_graph
from symad.tracing.wrt import grouping_of, input_names, others, select, symbol_like, with_directions


@without_collecting
def implicit(
    F: Graph | sympy.Expr,
    unknown: sympy.Expr,
    parameters: tuple[sympy.Symbol | sympy.Expr, ...] | None = None,
    solver: Callable[..., Number] | None = None,
    inputs: Inputs | None = None,
) -> Graph:
    """The solution of F(x, θ) = 0 as a graph (parameters..., guess...) -> x.

    Its derivatives come from the implicit function theorem, forward and reverse and of any order,
    through linear solves with ∂F/∂x; the solver is never differentiated. A fixed point x = g(x, θ)
    is F = x − g; a minimizer is F = ∇f (``symad.gradient(f, x)``). With 50 unknowns or more, ∂F/∂x is a
    sparse matrix in all of these solves if at most a tenth of its elements are structurally nonzero.

    Args:
        F: an argument of `trace`, with as many equations as there are unknowns.
        unknown: a symbol, or a tuple of symbols, among the inputs of F.
        parameters: symbols in the order wanted; all other inputs by default.
        solver: a function (guess, parameters...) -> x of flat guess and flat x; Newton with symad's own
            Jacobian by default.
        inputs: order and grouping of the arguments of F, as in `trace`; an argument that is a dict, list or
            dataclass of arrays may be unknown, or a parameter, as a whole.

    Returns:
        A graph whose last inputs, named ``x_guess``, have the shapes and the structure of the unknowns; its
        value has the structure of ``unknown``.

    Raises:
        ShapeError: the number of equations is not the number of unknowns.
        DerivativeError: there is no unknown, or one does not occur in the equations.

    Example:
        >>> import sympy, symad
        >>> x, a = sympy.symbols("x a", positive=True)
        >>> root = symad.implicit(x**2 - a, x)
        >>> float(symad.gradient(root, a)(4.0, 1.0))
        0.25
    """
    graph = as_graph(F, unknown, inputs)
    selection = select(graph, unknown)
    unknowns = selection.nodes
    if not unknowns:
        raise DerivativeError(f"implicit: unknown={unknown!r} has no symbol; give an input of F, or several")
    first = [] if parameters is None else list(select(graph, parameters).entries)
    entries = [*first, *others(graph, [*unknowns, *(n for entry in first for n in entry.nodes)])]
    chosen = tuple(n for entry in entries for n in entry.nodes)
    taken = input_names(graph)
    guesses = tuple(input_node(symbol_like(f"{_name(n)}_guess", n.shape, taken), n.shape) for n in unknowns)
    flat_guess = concatenate([flatten(g) for g in guesses])
    flat = input_node(symbol_like("unknowns", flat_guess.shape, taken), flat_guess.shape)
    used = set(graph.nodes)
    missing = [_name(node) for node in unknowns if node not in used]
    if missing:
        raise DerivativeError(f"{', '.join(missing)} does not occur in the equations, which cannot define it")
    residual = Graph((flat, *chosen), rebuild(graph, dict(zip(unknowns, _cut(flat, unknowns), strict=True))))
    solution = _cut(root(residual, flat_guess, chosen, solver), unknowns)
    outputs, structures = selection.packed(solution)
    before = Graph(chosen, ()).grouped(grouping_of(entries))
    structure = selection.structure(structures)
    return with_directions(before, guesses, selection, "guess", outputs, structure, "solution")


def _name(node: Node) -> str:
    return str(symbol_of(node))


def _cut(flat: Node, like: tuple[Node, ...]) -> list[Node]:
    """A flat vector as arrays of the shapes of some nodes."""
    parts: list[Node] = []
    offset: Dim = 0
    for node in like:
        parts.append(reshape(slice_axis(flat, 0, offset, size(node.shape)), node.shape))
        offset = plus(offset, size(node.shape))
    return parts
