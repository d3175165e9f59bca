"""Certificates of formulas and code that users wrote themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from types import ModuleType
from typing import Any

import numpy as np
import sympy

from symad.core.claims import Derivative
from symad.core.dims import format_shape, same_dim, same_shape, size
from symad.core.graph import Graph, Node, TupleOf, rebuild, topological
from symad.core.signatures import Inputs, Traceable, Where, Wrt
from symad.derivatives.forward import pushforward as own_pushforward
from symad.derivatives.hessian import hessian as own_hessian
from symad.derivatives.jacobian import gradient as own_gradient
from symad.derivatives.jacobian import jacobian as own_jacobian
from symad.derivatives.reverse import pullback as own_pullback
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.stacking import element
from symad.ops.basic.contraction import permute
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import Input, described, symbol_of
from symad.tracing.wrt import select
from symad.verification.budget import Budget, Meter
from symad.verification.certificate.assumptions import trusted
from symad.verification.certificate.blame import Blame
from symad.verification.certificate.certificate import Certificate, Comparison
from symad.verification.claimed_domain import condition_of, needed_condition, restricted
from symad.verification.decide import decide
from symad.verification.equality import fit, value_names, with_inputs_of
from symad.verification.measuring.call_users_code import function_of
from symad.verification.measuring.user_rules import SECOND, entries_of_rules
from symad.verification.mistakes.asking import named_formula
from symad.verification.open_domain import claims_nothing, holds_an_open_set
from symad.verification.outside import as_decidable, refuse_free_sizes, undecided_outside
from symad.verification.programs import Program, as_called, measured
from symad.verification.proof.with_proofs import OWN
from symad.verification.settled import bounds_of, box_of, only_tested, within
from symad.verification.terms.rounded_constants import with_simple_constants
from symad.verification.values.points import promise_of


class _NotGiven:
    def __repr__(self) -> str:
        return "..."


MISSING = _NotGiven()
"""The default of the candidates, for "not given"; signatures in the documentation show it."""


@undecided_outside
def verify(
    f: Traceable,
    wrt: Wrt | None = None,
    *,
    value: Any = MISSING,
    gradient: Any = MISSING,
    jacobian: Any = MISSING,
    hessian: Any = MISSING,
    vjp: Any = MISSING,
    jvp: Any = MISSING,
    where: Where = None,
    constants: str = "exact",
    seed: int | None = None,
    budget: Budget | None = None,
    hostile: bool = True,
    inputs: Inputs | None = None,
) -> Certificate:
    """A certificate of a user's formula or code for ``f`` or one of its derivatives.

    Exactly one candidate is given. It is SymPy (an expression, matrix, matrix expression, array, or a
    list of them), an array of NumPy, a Graph, or a numeric function. A formula is compared exactly. A
    numeric function is called with the inputs in the order of the graph, whatever ``wrt`` is, as floats and
    float64 arrays, or as tensors of PyTorch or arrays of JAX or CuPy if it refuses these; its results are
    compared with exact values to 50 digits, at ordinary and at hostile points. A module stands for the last
    function it defines, such as a generated file that was imported.

    Args:
        f: what `trace` takes.
        wrt: inputs, all by default.
        value: a candidate for f itself.
        gradient: one part for each wrt entry, in its shape; bare if wrt is bare. For scalar inputs also
            a vector of all of them. Row and column vectors count as the same.
        jacobian: rows are the outputs flattened in order, columns the wrt elements; also an array
            (output axes..., wrt axes...), or SymPy's order (wrt axes..., output axes...).
        hessian: N×N over all wrt elements flattened in order.
        vjp: x_bar of each wrt entry from the inputs and y_bar of each output: a function
            (inputs..., y_bar...), or in the shape of ``backward(ctx, y_bar...)`` with the inputs as
            ``ctx.saved_tensors``; it may return one part for each input. A formula has the symbols y_bar, or
            y1_bar, y2_bar, ...
        jvp: y_dot of each output from the inputs and x_dot of each wrt entry, in that order.
        where: the domain in which the claim is made: a SymPy condition, or a function of the inputs; true,
            which x² >= 0 becomes for a real x, is no condition.
        constants: "exact", or "rounded" where floats of a formula stand for the simple numbers that they
            are when rounded, such as 0.3333333333333333 for 1/3.
        seed: for the random primes; a new one by default, always recorded.
        budget: limits of time and size.
        hostile: true if a numeric function is measured at hostile points as well, where a formula that is
            right may lose its accuracy; the certificate has a section of its own for these.
        inputs: order and grouping of the arguments, as in `trace`; numeric functions are called with these.

    Raises:
        TypeError: not exactly one candidate was given, or it is text or a path, or a numeric function takes
            other arguments or returns something of another kind or shape.
        TraceError: ``where`` is not a condition on the inputs, or false.
        ShapeError: a formula has another shape than the derivative.
        DerivativeError: a function in ``f`` has no known derivative.
    """
    if constants not in ("exact", "rounded"):
        raise ValueError(f'verify: constants is "exact" or "rounded", not {constants!r}')
    offered = {
        "value": value, "gradient": gradient, "jacobian": jacobian,
        "hessian": hessian, "vjp": vjp, "jvp": jvp,
    }  # fmt: skip
    chosen = {k: v for k, v in offered.items() if v is not MISSING}
    if len(chosen) != 1:
        found = ", ".join(chosen) or "none"
        raise TypeError(f"verify needs exactly one of {'=, '.join(offered)}=; given: {found}")
    ((kind, candidate),) = chosen.items()
    graph, where = as_decidable(f, wrt, inputs), needed_condition(where)
    refuse_free_sizes("verify", graph)
    nodes = select(graph, wrt).nodes
    box = {} if where is None else box_of(graph, where)
    whole, (graph, read) = graph, (graph, {}) if _is_numeric(candidate) else within(graph, box, constants)
    reference, names = _reference(graph, wrt, kind)
    assumes = trusted(graph, derivatives=kind != "value")
    if kind != "value":
        assumes = (*assumes, OWN)
    rules = () if kind == "value" else tuple(entries_of_rules(graph.output_nodes, 1 + (kind in SECOND)))
    title = f"{kind} of {graph.name}"
    domain = None if where is None else condition_of(whole, where)
    notes = () if where is None else (f"the claim is made where {_words(where)}",)
    bounds = bounds_of(box)
    if domain is not None and not holds_an_open_set(_with_values(graph, reference), domain, bounds):
        made = claims_nothing(title)
    elif _is_numeric(candidate):
        function = function_of(candidate)
        if kind == "vjp":
            function = as_called(function, graph, select(graph, wrt))
        of = () if kind == "value" else graph.output_nodes
        program = Program(title, function, reference, names, kind, assumes, of, graph, nodes)
        made = measured(program, Meter(budget or Budget()), hostile, domain, bounds)
    else:
        settled = False
        formula = _formula(graph if kind not in PRODUCTS else reference, nodes, reference, candidate, kind)
        if domain is not None:
            given, (formula, more) = formula, within(formula, box, constants)
            settled = graph is not whole or formula is not given
            read = {**read, **more}
            reference, formula = restricted(reference, domain), restricted(formula, domain)
        claim = None if domain is not None else _derivative(graph, nodes, reference, kind)
        comparison = Comparison(
            title, reference, formula, names, assumes, f"the {kind}", "the candidate", claim
        )
        made = _with_rounded(title, comparison, constants, seed, budget, read)
        made = only_tested(made) if settled else made
        made = named_formula(made, kind, graph, nodes, comparison, domain)
    return replace(made, entries=made.entries + rules, notes=made.notes + notes)


def _with_values(graph: Graph, reference: Graph) -> Graph:
    """The claimed formula, and the function that the claim is about."""
    return Graph(reference.input_nodes, (*reference.output_nodes, *graph.output_nodes), None, graph.name)


PRODUCTS = ("vjp", "jvp")
CHECKED = {"vjp": "pullback", "jvp": "pushforward"}
"""The checker's names of the candidates."""


def _derivative(graph: Graph, wrt: Sequence[Node], reference: Graph, kind: str) -> Derivative:
    """The derivative that the checker has to compare a formula with."""
    directions = tuple(n for n in reference.input_nodes if n not in graph.input_nodes)
    along = {"vjp": ((), directions), "jvp": (directions, ())}.get(kind, ((), ()))
    return Derivative(CHECKED.get(kind, kind), graph.output_nodes, tuple(wrt), *along)


def _words(where: Where) -> str:
    return (
        str(where) if isinstance(where, sympy.Basic) else f"{getattr(where, '__name__', 'where')}(...) holds"
    )


CLOSE = 1e-9
"""Formulas with a relative difference below this may differ by rounded constants only."""


def _with_rounded(
    title: str,
    comparison: Comparison,
    constants: str,
    seed: int | None,
    budget: Budget | None,
    before: Mapping[str, str],
) -> Certificate:
    """The verdict, with floats read as simple numbers if requested; otherwise with a hint where that helps.

    ``before`` has the floats that are already read as simple numbers.
    """
    (left, first), (right, second) = map(with_simple_constants, (comparison.left, comparison.right))
    read = ", ".join(f"{old} as {new}" for old, new in {**before, **first, **second}.items())
    simple = replace(comparison, left=left, right=right, derivative=None)
    if constants == "rounded":
        made = decide(title, [simple], seed, budget)
        return replace(made, notes=(*made.notes, f"constants were read as rounded: {read}")) if read else made
    made = decide(title, [comparison], seed, budget)
    faults = made.entries_of("refuted")
    if not faults or not read or not all(e.witness is not None and e.witness.gap < CLOSE for e in faults):
        return made
    if decide(title, [simple], made.seed, budget).status in ("refuted", "undecided"):
        return made
    hint = f'only rounded constants differ ({read}); constants="rounded" reads them so'
    named = [
        replace(e, blame=Blame("a rounded constant", "", "")) if e in faults else e for e in made.entries
    ]
    return replace(made, entries=tuple(named), notes=(*made.notes, hint))


def _is_numeric(candidate: object) -> bool:
    if isinstance(candidate, (str, PurePath)):
        raise TypeError(
            f"verify: {str(candidate)!r} is text, and symad runs neither text nor files; import the file "
            "yourself and give its function, or the module"
        )
    known = (sympy.Basic, sympy.MatrixBase, sympy.NDimArray, Graph)
    return isinstance(candidate, ModuleType) or (callable(candidate) and not isinstance(candidate, known))


def _reference(graph: Graph, wrt: Wrt | None, kind: str) -> tuple[Graph, tuple[str, ...]]:
    """The exact value or derivative, and the names of its outputs."""
    if kind == "value":
        return graph, value_names(graph)
    if kind == "gradient":
        return own_gradient(graph, wrt), tuple(f"∂f/∂{name}" for name in select(graph, wrt).output_names)
    if kind in PRODUCTS:
        whole = own_pullback(graph, wrt) if kind == "vjp" else own_pushforward(graph, wrt)
        count, structure = len(graph.output_nodes), whole.structure
        assert isinstance(structure, TupleOf)  # the values, and then the products
        made = whole.with_outputs(whole.output_nodes[count:], TupleOf(structure.items[count:]), graph.name)
        dots = ["y_dot"] if count == 1 else [f"y{k}_dot" for k in range(1, count + 1)]
        return made, select(graph, wrt).labels("bar") if kind == "vjp" else tuple(dots)
    made = own_jacobian(graph, wrt) if kind == "jacobian" else own_hessian(graph, wrt)
    return made, ("∂f" if kind == "jacobian" else "∂²f",)


# ---- formulas -----------------------------------------------------------------------------------


def _formula(graph: Graph, wrt: Sequence[Node], reference: Graph, candidate: Traceable, kind: str) -> Graph:
    """The candidate as a graph whose outputs have the shapes of the reference's."""
    formula = with_inputs_of(graph, as_decidable(_as_array(candidate)))
    formula = _on_inputs_of(reference, formula, kind, isinstance(candidate, Graph))
    parts = list(formula.output_nodes)
    wanted = reference.output_nodes
    if kind == "gradient" and len(parts) == 1 and len(wanted) > 1:
        parts = _split_vector(parts[0], wanted)
    if kind in ("jacobian", "hessian"):
        parts = [_as_matrix(graph, wrt, parts, wanted[0], kind)]
    if len(parts) != len(wanted):
        raise ShapeError(
            f"the {kind} has {len(wanted)} parts ({', '.join(format_shape(w.shape) for w in wanted)}), "
            f"but the candidate has {len(parts)}"
        )
    fitted = tuple(_fitted(p, w, kind) for p, w in zip(parts, wanted, strict=True))
    inputs = tuple(dict.fromkeys((*reference.input_nodes, *formula.input_nodes)))
    return Graph(inputs, fitted, TupleOf((None,) * len(fitted)), "candidate")


def _on_inputs_of(reference: Graph, formula: Graph, kind: str, by_position: bool) -> Graph:
    """The formula on the inputs of the claim; those of other names by position.

    Raises:
        TraceError: the formula depends on something else.
    """
    known, own = reference.input_nodes, formula.input_nodes
    if by_position and len(own) == len(known):
        moved = {a: b for a, b in zip(own, known, strict=True) if a is not b}
        if all(_may_be(a, b) and a not in known for a, b in moved.items()):
            formula = Graph(known, rebuild(formula.output_nodes, moved), formula.structure, formula.name)
    others = [n for n in topological(formula.output_nodes) if isinstance(n.op, Input) and n not in known]
    if others:
        lists = [", ".join(_told(n, [*known, *others]) for n in nodes) for nodes in (others, known)]
        raise TraceError(
            f"verify: the candidate for the {kind} depends on {lists[0]}; the {kind} depends on {lists[1]}. "
            "Use these symbols, with these assumptions"
        )
    return formula


def _told(node: Node, nodes: Sequence[Node]) -> str:
    """An input with its shape; of one name among several, with what its symbol promises."""
    name = str(symbol_of(node))
    twice = sum(str(symbol_of(other)) == name for other in nodes) > 1
    return f"{name} ({promise_of(node)})" if twice else described(node) if node.shape else name


def _may_be(own: Node, known: Node) -> bool:
    """True if an argument of a traced function may stand for an input of another name."""
    return same_shape(own.shape, known.shape) and str(symbol_of(own)) != str(symbol_of(known))


def _as_array(candidate: Any) -> Traceable:
    """Nested lists and NumPy arrays of expressions and numbers as an array; anything else as it is."""
    if isinstance(candidate, np.ndarray):
        return sympy.ImmutableDenseNDimArray(candidate.ravel().tolist(), candidate.shape)
    if isinstance(candidate, (list, tuple)) and any(isinstance(part, np.ndarray) for part in candidate):
        return [_as_array(part) for part in candidate]
    rows = isinstance(candidate, (list, tuple)) and all(isinstance(r, (list, tuple)) for r in candidate)
    return sympy.ImmutableDenseNDimArray(candidate) if rows and candidate else candidate


def _split_vector(vector: Node, wanted: Sequence[Node]) -> list[Node]:
    """The scalar parts of a vector that has all of them."""
    flat = [d for d in vector.shape if d != 1]
    if all(w.shape == () for w in wanted) and flat == [len(wanted)]:
        line = reshape(vector, (len(wanted),))
        return [element(line, k) for k in range(len(wanted))]
    return [vector]


def _fitted(part: Node, wanted: Node, kind: str) -> Node:
    """The part in the expected shape; rows and columns count as the same where that is unambiguous."""
    part = fit(part, wanted)
    if same_shape(part.shape, wanted.shape):
        return part
    if part.shape == () and all(d == 1 for d in wanted.shape):
        return reshape(part, wanted.shape)
    if (
        len(part.shape) == len(wanted.shape) == 2
        and same_shape(part.shape[::-1], wanted.shape)
        and 1 in part.shape
    ):
        return permute(part, (1, 0))
    raise ShapeError(
        f"the {kind} has shape {format_shape(wanted.shape)}, but the candidate {format_shape(part.shape)}"
    )


def _as_matrix(graph: Graph, wrt: Sequence[Node], parts: Sequence[Node], wanted: Node, kind: str) -> Node:
    """A Jacobian or Hessian given as a matrix, as an array over all axes, or entry by entry."""
    if len(parts) != 1:
        if all(same_dim(size(p.shape), 1) for p in parts):
            from symad.ops.arrays.stacking import pack_scalars

            return pack_scalars([reshape(p, ()) for p in parts], (len(parts),))
        from symad.ops.arrays.stacking import stack

        return stack([reshape(p, (size(p.shape),)) for p in parts])
    (part,) = parts
    if same_shape(part.shape, wanted.shape) or len(wrt) != 1 or len(graph.output_nodes) != 1:
        return part
    inner = wrt[0].shape
    outer = graph.output_nodes[0].shape if kind == "jacobian" else inner
    if same_shape(part.shape, (*outer, *inner)):
        return reshape(part, wanted.shape)
    if same_shape(part.shape, (*inner, *outer)):  # SymPy's order
        rank = len(inner)
        order = (*range(rank, len(part.shape)), *range(rank))
        return reshape(permute(part, order), wanted.shape)
    if same_dim(size(part.shape), size(wanted.shape)) and 1 in wanted.shape:
        return reshape(part, wanted.shape)
    return part
