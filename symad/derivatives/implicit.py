"""Implicit functions: x(θ) defined by F(x, θ) = 0, differentiated by the implicit function theorem.

    x_dot = −(∂F/∂x)⁻¹ ∂F/∂θ θ_dot

The solver's iterations are never differentiated: the derivative needs the solution alone. It is
a linear solve with ∂F/∂x as a matrix, an op with derivatives and a transpose, so reverse
mode and all higher orders follow. A large ∂F/∂x that is mostly zero is stored and factorized as a sparse
matrix. Source: Griewank and Walther, "Evaluating Derivatives" (2008), section 15.1; Blondel et al.,
"Efficient and modular implicit differentiation" (2022), equation 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import ArrayLike, Number
from symad.core.dims import Shape, is_concrete, same_dim, size, times
from symad.core.graph import ZERO, Graph, Node, Op, rebuild, shape, topological
from symad.core.process import without_collecting
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Form,
    Forms,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    evaluate,
    flops,
    jvp,
    sympy_form,
)
from symad.core.questions import evaluate as evaluate_op
from symad.core.signatures import Inputs
from symad.errors import DerivativeError, EvaluationError, ShapeError
from symad.higher_order.captured import captured_nodes
from symad.higher_order.scan import Local
from symad.numbers.number_domains import domain_of
from symad.numbers.values import unchecked
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import neg
from symad.ops.basic.shaping import broadcast_axes, cut, flatten, reshape
from symad.ops.basic.sources import fresh_input, input_node, symbol_of
from symad.ops.linalg.solve_det import Solve, solve
from symad.ops.sparse.sparse_solve import solve_sparse, sparse_solve
from symad.tracing import as_graph
from symad.tracing.wrt import (
    differentiated,
    grouping_of,
    input_names,
    others,
    select,
    symbol_like,
    with_directions,
)
from symad.transforms.batches import batch_outputs
from symad.transforms.jacobians import forward_jacobian, total_size
from symad.transforms.tangents import push

# ---- roots ---------------------------------------------------------------------------------------


STEPS = 100
"""Newton steps before giving up."""

TOLERANCE = 450
"""Newton stops when a step is smaller than this many units of rounding, relative to the solution."""


@dataclass(frozen=True, eq=False)
class Root(Op):
    """The flat vector x (n,) with residual(x, θ...) = 0, from a guess.

    Arguments: the guess (n,), then the parameters. ``residual``: a graph of `Local` 0 (x) and
    `Local` 1, 2, ... (the parameters), with outputs of n elements together. ``solver`` is None for
    Newton, or a function (guess, parameters...) -> x. ``batched`` marks arguments with a leading
    axis of independent problems.
    """

    residual: Graph
    solver: Any
    batched: tuple[bool, ...]


def root(residual: Graph, guess: Node, parameters: Sequence[Node], solver: Any = None) -> Node:
    """The solution as a node; ``residual`` has the unknown first, flat.

    Values of an enclosing function that the residual uses become parameters.
    """
    outer = captured_nodes(residual)
    if outer and solver is not None:
        raise DerivativeError(
            f"implicit: the equations of {residual.name} use values of the function around them, which the "
            "solver is not given; make them parameters, or leave the solver out"
        )
    args = (guess, *parameters, *outer)
    local = tuple(Node.of(Local(k, node.shape)) for k, node in enumerate(args))
    sources = (*residual.input_nodes, *outer)
    made = rebuild(residual.output_nodes, dict(zip(sources, local, strict=True)))
    return Node.of(Root(Graph(local, made), solver, (False,) * len(args)), args)


def residual_at(op: Root, x: Node, parameters: Nodes) -> Node:
    """The residual as one flat vector."""
    values = dict(zip(op.residual.input_nodes, (x, *parameters), strict=True))
    return concatenate([flatten(r) for r in rebuild(op.residual.output_nodes, values)])


def slope_at(op: Root, x: Node, parameters: Nodes) -> Node:
    """∂F/∂x (n, n) at a point."""
    local = op.residual.input_nodes
    matrix = forward_jacobian([flatten(r) for r in op.residual.output_nodes], [local[0]])
    return rebuild([matrix], dict(zip(local, (x, *parameters), strict=True)))[0]


MIN_UNKNOWNS = 50
"""The number of unknowns from which the pattern of ∂F/∂x is computed."""

MAX_SPARSE_SHARE = 0.1
"""A Jacobian with a larger part of its entries than this counts as dense."""


@lru_cache(maxsize=64)
def sparse_slope(residual: Graph) -> Node | None:
    """∂F/∂x as a sparse matrix of the residual's inputs, if most of it is structurally zero."""
    unknown = residual.input_nodes[0]
    if not all(is_concrete(node.shape) for node in residual.nodes) or size(unknown.shape) < MIN_UNKNOWNS:
        return None
    from symad.sparsity.patterns.detection import jacobian_pattern
    from symad.sparsity.recovery.jacobian_hessian import sparse_jacobian

    flat = Graph(residual.input_nodes, (concatenate([flatten(r) for r in residual.output_nodes]),))
    pattern = jacobian_pattern(flat, flat.output_nodes, (unknown,))
    if pattern.nnz > MAX_SPARSE_SHARE * int(size(unknown.shape)) ** 2:
        return None
    return sparse_jacobian(flat, 0).output_nodes[0]


@shape(Root)
def root_shape(op: Root, args: Nodes) -> Shape:
    guess = args[0]
    unknowns = size(guess.shape[int(op.batched[0]) :])
    equations = total_size(op.residual.output_nodes)
    if not same_dim(unknowns, equations):
        raise ShapeError(f"implicit: {equations} equations for {unknowns} unknowns; give as many")
    if any(op.batched):
        count = next(a.shape[0] for a, b in zip(args, op.batched, strict=True) if b)
        return (count, unknowns)
    return (unknowns,)


@jvp.dispatch
def root_jvp(op: Root, y: Node, tangents: Tangents) -> Tangent:
    """−(∂F/∂x)⁻¹ times the tangent of F at fixed x; the guess has no influence."""
    if not any(isinstance(t, Node) for t in tangents[1:]):
        return ZERO
    active = [k for k, t in enumerate(tangents) if k and isinstance(t, Node)]
    given = [y, *y.args[1:], *(t for t in tangents[1:] if isinstance(t, Node))]
    batched = [any(op.batched), *op.batched[1:], *(op.batched[k] for k in active)]
    # placeholders: tangents may hold inputs of the residual, and a batch has an axis that one problem lacks
    fresh = [fresh_input(v.shape[1:] if b else v.shape) for v, b in zip(given, batched, strict=True)]
    point, dots = fresh[: len(y.args)], fresh[len(y.args) :]
    y_dot = _tangent(op, point, dict(zip(active, dots, strict=True)))
    if y_dot is None:
        return ZERO
    pairs = list(zip(fresh, given, batched, strict=True))
    (moved,) = rebuild([y_dot], {f: v for f, v, b in pairs if not b})
    if not any(batched):
        return moved
    return batch_outputs([moved], {f: v for f, v, b in pairs if b}, y.shape[0])[0]


def _tangent(op: Root, point: Sequence[Node], dots: Mapping[int, Node]) -> Node | None:
    """The tangent of one problem at a solution and its parameters, from tangents of some parameters."""
    local = op.residual.input_nodes
    flat = concatenate([flatten(r) for r in op.residual.output_nodes])
    (moved,) = push([flat], {local[k]: t for k, t in dots.items()})
    if not isinstance(moved, Node):
        return None
    at_solution = dict(zip(local, point, strict=True))
    (moved,) = rebuild([moved], at_solution)
    sparse = None if any(op.batched) else sparse_slope(op.residual)
    if sparse is not None:
        return neg(sparse_solve(rebuild([sparse], at_solution)[0], moved))
    return neg(solve(slope_at(op, point[0], tuple(point[1:])), moved))


@batch.dispatch
def root_batch(op: Root, args: Nodes, batched: Flags, count: Count) -> Node:
    """Independent problems along one axis; a batch of batches is one long batch."""
    if not any(op.batched):
        return Node.of(Root(op.residual, op.solver, tuple(batched)), args)
    inner = next(a.shape[int(b)] for a, b, old in zip(args, batched, op.batched, strict=True) if old)
    both = []
    for a, new, old in zip(args, batched, op.batched, strict=True):
        if new or old:
            rest = a.shape[int(new) + int(old) :]
            axes = [k for k, there in enumerate((new, old)) if there]
            wide = broadcast_axes(a, (count, inner, *rest), [*axes, *range(2, 2 + len(rest))])
            a = reshape(wide, (times(count, inner), *rest))
        both.append(a)
    flags = tuple(new or old for new, old in zip(batched, op.batched, strict=True))
    found = Node.of(Root(op.residual, op.solver, flags), tuple(both))
    return reshape(found, (count, inner, *found.shape[1:]))


@flops.dispatch
def root_flops(op: Root, y: Node) -> Count:
    """The cost of one Newton step (residual, Jacobian, solve): the number of steps is not known."""
    n = y.shape[-1]
    once = sum(flops(node.op, node) for node in topological(op.residual.output_nodes))
    return (n + 1) * once + sympy.Rational(2, 3) * n**3


@evaluate.dispatch
def root_evaluate(op: Root, values: Values) -> Array:
    if not any(op.batched):
        return _solve(op, values)
    count = next(len(v) for v, b in zip(values, op.batched, strict=True) if b)
    rows = [
        _solve(op, tuple(v[k] if b else v for v, b in zip(values, op.batched, strict=True)))
        for k in range(count)
    ]
    return np.stack(rows)


def _solve(op: Root, values: Sequence[Number]) -> Array:
    """The root by the user's solver, or by Newton's method with symad's Jacobian and step halving."""
    if op.solver is not None:
        return np.asarray(op.solver(*values)).reshape(-1)
    x_node, *parameters = op.residual.input_nodes
    flat = residual_at(op, x_node, tuple(parameters))
    exact = domain_of(values).rank == 2  # mpmath: iterate to its precision
    sparse = None if exact else sparse_slope(op.residual)
    slope = sparse if sparse is not None else slope_at(op, x_node, tuple(parameters))

    def at(x: Array) -> tuple[np.ndarray, np.ndarray]:
        point = dict(zip(op.residual.input_nodes, (x, *values[1:]), strict=True))
        residual, matrix = unchecked([flat, slope], point)
        return residual, matrix

    return newton(at, np.asarray(values[0]).reshape(-1), exact)


def newton(at: Callable[[Any], tuple[Any, Any]], x: ArrayLike, high_precision: bool = False) -> Any:
    """Newton's method; steps are halved while the residual grows.

    Raises:
        EvaluationError: no convergence, or a singular Jacobian; the message says where it stopped.
    """
    import mpmath

    tolerance = mpmath.mpf(10) ** (4 - mpmath.mp.dps) if high_precision else _reachable(x)
    if high_precision:
        x = np.frompyfunc(mpmath.mpf, 1, 1)(x)
    residual, matrix = at(x)
    for _ in range(STEPS):
        try:
            if hasattr(matrix, "indptr"):
                parts = matrix.data, residual, matrix.indptr, matrix.indices
                move = solve_sparse(*parts, False)
            else:
                move = evaluate_op(Solve(), (np.asarray(matrix), np.asarray(residual)[:, None]))[:, 0]
        except np.linalg.LinAlgError:
            raise EvaluationError(f"implicit: the Jacobian is singular at x = {x}; start elsewhere") from None
        scale, new = 1.0, None
        for _ in range(30):
            new = x - scale * move
            new_residual, new_matrix = at(new)
            if _norm(new_residual) < _norm(residual) or _norm(move) <= tolerance * (1 + _norm(x)):
                break
            scale /= 2
        done = _norm(move) <= tolerance * (1 + _norm(x)) or _norm(new_residual) == 0
        x, residual, matrix = new, new_residual, new_matrix
        if done:
            return x
    raise EvaluationError(
        f"implicit: Newton did not converge in {STEPS} steps; it stopped at x = {x}, F = {residual}"
    )


def _reachable(x: Any) -> float:
    """The tolerance for the precision of the numbers; other numbers are treated as doubles."""
    return TOLERANCE * float(np.finfo(x.dtype if x.dtype.kind == "f" else float).eps)


def _norm(vector: Any) -> float:
    return max((abs(v) for v in np.asarray(vector).ravel()), default=0)


@sympy_form.dispatch
def root_sympy(op: Root, y: Node, forms: Forms) -> Form:
    return None  # no SymPy class: the op is wrapped, so that tracing returns it


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
    selection = differentiated(graph, unknown)
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
    used, shapes = set(graph.nodes), [n.shape for n in unknowns]
    missing = [_name(node) for node in unknowns if node not in used]
    if missing:
        raise DerivativeError(f"{', '.join(missing)} does not occur in the equations, which cannot define it")
    residual = Graph((flat, *chosen), rebuild(graph, dict(zip(unknowns, cut(flat, shapes), strict=True))))
    solution = cut(root(residual, flat_guess, chosen, solver), shapes)
    outputs, structures = selection.packed(solution)
    before = Graph(chosen, ()).grouped(grouping_of(entries))
    structure = selection.structure(structures)
    return with_directions(before, guesses, selection, "guess", outputs, structure, "solution")


def _name(node: Node) -> str:
    return str(symbol_of(node))
