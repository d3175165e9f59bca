"""Certificates of what users wrote: a formula or code for a derivative, and two forms of one function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from types import ModuleType
from typing import Any

import sympy

from symad.core.claims import Derivative
from symad.core.graph import Graph, Node, TupleOf
from symad.core.signatures import Inputs, Traceable, Where, Wrt
from symad.core.structures import DataclassOf, DictOf, leaves, paths
from symad.derivatives.hessian import hessian as own_hessian
from symad.derivatives.jacobian import gradient as own_gradient
from symad.derivatives.jacobian import jacobian as own_jacobian
from symad.derivatives.sweeps import pullback as own_pullback
from symad.derivatives.sweeps import pushforward as own_pushforward
from symad.errors import TraceError
from symad.tracing.wrt import select
from symad.verification.budget import Budget, Meter
from symad.verification.certificate.blame import Blame
from symad.verification.certificate.certificate import Certificate, Comparison, ExactForm, trusted
from symad.verification.claimed_domain import condition_of, needed_condition
from symad.verification.claims import as_array, fit, formula_of, with_inputs_of
from symad.verification.decide import decide, named_formula, seed_of
from symad.verification.measuring.call_users_code import Caller, function_of
from symad.verification.measuring.precisions import precision_named
from symad.verification.measuring.user_rules import SECOND, entries_of_rules
from symad.verification.outside import as_decidable, refuse_free_sizes, undecided_outside
from symad.verification.programs import as_called, as_one_matrix, measured
from symad.verification.proof.with_proofs import OWN
from symad.verification.terms.rounded_constants import with_simple_constants

# ---- whether two expressions, graphs or structures of them are one function ----------------------


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
    assumes = trusted(left, right, derivatives=False)
    comparison = Comparison(
        "equality", left, value_names(left), assumes, right=right,
        left_name="the left side", right_name="the right side",
    )  # fmt: skip
    return decide("equality", [comparison], seed, budget)


def value_names(graph: Graph) -> tuple[str, ...]:
    """The names of the outputs of a graph: "value", "value 1" of several, ``value['loss']`` of a dict."""
    count, structure = len(graph.output_nodes), graph.structure
    if structure is None or leaves(structure) != count or not isinstance(structure, (DictOf, DataclassOf)):
        return ("value",) if count == 1 else tuple(f"value {k}" for k in range(count))
    return tuple(f"value{path}" for path in paths(structure))


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
    computed_in: str | None = None,
) -> Certificate:
    """A certificate of a user's formula or code for ``f`` or one of its derivatives.

    Exactly one candidate is given. It is SymPy (an expression, matrix, matrix expression, array, or a
    list of them), an array of NumPy, a Graph, or a numeric function. A formula is compared exactly. A
    numeric function is called with the inputs in the order of the graph, whatever ``wrt`` is. It receives
    floats and float64 arrays, or, if it refuses these, tensors of PyTorch or arrays of JAX or CuPy. Its
    results are compared with exact values to 50 digits, at ordinary and at hostile points. A module stands
    for the last function it defines, such as a generated file that was imported.

    Args:
        f: what `trace` takes.
        wrt: inputs, all by default.
        value: a candidate for f itself.
        gradient: one part for each wrt entry, in its shape; one bare part where `gradient` gives one. For
            scalar inputs also a vector of all of them. Row and column vectors count as the same.
        jacobian: rows are the outputs flattened in order, columns the wrt elements; also an array
            (output axes..., wrt axes...), or SymPy's order (wrt axes..., output axes...); a function may
            also return a tuple of these for each wrt entry, as ``jax.jacfwd`` does.
        hessian: N×N over all wrt elements flattened in order.
        vjp: x_bar of each wrt entry from the inputs and y_bar of each output: a function
            (inputs..., y_bar...), or in the shape of ``backward(ctx, y_bar...)`` with the inputs as
            ``ctx.saved_tensors``; it may return one part for each input. A formula has the names of
            `pullback` for them: y_bar, or y1_bar, y2_bar, ...; f_bar if an input is called y.
        jvp: y_dot of each output from the inputs and x_dot of each wrt entry, in that order.
        where: the domain of the claim: a SymPy condition, or a function of the inputs. SymPy makes true of
            x² >= 0 for a real x; true is no condition.
        constants: "exact", or "rounded" where floats of a formula stand for the simple numbers that they
            are when rounded, such as 0.3333333333333333 for 1/3.
        seed: for the random primes; a new one by default, always recorded.
        budget: limits of time and size.
        hostile: true if a numeric function is measured at hostile points as well, where a formula that is
            right may lose its accuracy; the certificate has a section of its own for these.
        inputs: order and grouping of the arguments, as in `trace`; numeric functions are called with these.
        computed_in: "float32", "float16" or "bfloat16" for a numeric function that computes in this type,
            whatever type it returns: it is called with numbers of it (NumPy has no bfloat16 and gets them as
            float32), and judged by roundings of it. By default the type of its results tells.

    Returns:
        A `Certificate` with one entry for each part of the claim; refuted entries have the point and both
        values, and name the mistake where it is known.

    Raises:
        TypeError: not exactly one candidate was given, or it is text or a path, or a numeric function takes
            other arguments or returns something of another kind or shape.
        TraceError: ``where`` is not a condition on the inputs, or false.
        ShapeError: a formula has another shape than the derivative.
        DerivativeError: a function in ``f`` has no known derivative.

    Example:
        >>> import sympy, symad
        >>> x = sympy.Symbol("x", real=True)
        >>> symad.verify(sympy.tanh(x), gradient=1 - sympy.tanh(x) ** 2).status
        'proved'
        >>> symad.verify(sympy.tanh(x), gradient=1 - sympy.tanh(x)).status
        'refuted'
    """
    limits, meter = precision_named(computed_in, "verify"), Meter(budget or Budget())
    if constants not in ("exact", "rounded"):
        raise ValueError(f'verify: constants is "exact" or "rounded", not {constants!r}')
    kind, candidate = _only({
        "value": value, "gradient": gradient, "jacobian": jacobian,
        "hessian": hessian, "vjp": vjp, "jvp": jvp,
    })  # fmt: skip
    graph, where = as_decidable(f, wrt, inputs), needed_condition(where)
    refuse_free_sizes("verify", graph)
    domain = None if where is None else condition_of(graph, where)
    notes = () if where is None else (f"the claim is made where {_words(where)}",)
    seed, claim = seed_of(seed), _claimed(graph, wrt, kind, domain)
    if _is_numeric(candidate):
        function = function_of(candidate)
        if kind in FORMS:
            function = FORMS[kind](function, graph, select(graph, wrt))
        made = measured(claim, Caller(function, claim.left.arguments, limits), meter, hostile, seed)
    else:
        made = _compared(claim, wrt, kind, candidate, constants, seed, meter)
    rules = entries_of_rules(graph.output_nodes, 1 + (kind in SECOND), made.seed) if kind != "value" else []
    return replace(made, entries=(*made.entries, *rules), notes=made.notes + notes)


def _only(offered: Mapping[str, Any]) -> tuple[str, Any]:
    """The kind and candidate that was given.

    Raises:
        TypeError: none was given, or several.
    """
    chosen = [(kind, candidate) for kind, candidate in offered.items() if candidate is not MISSING]
    if len(chosen) != 1:
        found = ", ".join(kind for kind, _ in chosen) or "none"
        raise TypeError(f"give exactly one claim, {'=, '.join(offered)}=; given: {found}")
    return chosen[0]


FORMS = {"vjp": as_called, "jacobian": as_one_matrix}
"""How functions for some derivatives may be called, and what they may return."""

CHECKED = {"vjp": "pullback", "jvp": "pushforward"}
"""The names that claims have for products."""


def _claimed(graph: Graph, wrt: Wrt | None, kind: str, domain: Node | None) -> ExactForm:
    """What a candidate is compared with."""
    reference, names = _reference(graph, wrt, kind)
    directions = tuple(n for n in reference.input_nodes if n not in graph.input_nodes)
    along = {"vjp": ((), directions), "jvp": (directions, ())}.get(kind, ((), ()))
    of = Derivative(CHECKED.get(kind, kind), graph.output_nodes, tuple(select(graph, wrt).nodes), *along)
    assumes = trusted(graph, derivatives=kind != "value")
    own = () if kind == "value" else (OWN,)
    return ExactForm(f"{kind} of {graph.name}", reference, names, (*assumes, *own), of, domain, graph)


def _with_formula(claim: ExactForm, kind: str, read: Graph, by_position: bool) -> Comparison:
    """The claim that a formula is the value or derivative."""
    assert claim.function is not None and claim.derivative is not None
    known = claim.left if kind in CHECKED else claim.function
    formula = formula_of(known, claim.derivative.wrt, claim.left, read, kind, by_position)
    return Comparison(**vars(claim), right=formula, left_name=f"the {kind}")


def _compared(
    claim: ExactForm, wrt: Wrt | None, kind: str, candidate: Any, constants: str, seed: int, meter: Meter
) -> Certificate:
    """The certificate of a formula; with a hint where it is right but for rounded constants.

    A claim with the constants read as rounded is another one: about the function that is so read, too.
    """
    read, by_position = as_decidable(as_array(candidate)), isinstance(candidate, Graph)
    assert claim.function is not None
    (simple, ours), (formula, theirs) = map(with_simple_constants, (claim.function, read))
    told = ", ".join(f"{old} as {new}" for old, new in {**ours, **theirs}.items())
    rounded = constants == "rounded"

    def asked(rounded: bool) -> Comparison:
        if not rounded:
            return _with_formula(claim, kind, read, by_position)
        return _with_formula(_claimed(simple, wrt, kind, claim.domain), kind, formula, by_position)

    comparison = asked(rounded)
    made = decide(claim.title, [comparison], seed, meter.budget)
    faults = () if rounded else made.entries_of("refuted")
    if rounded and told:
        made = replace(made, notes=(*made.notes, f"constants were read as rounded: {told}"))
    elif told and faults and all(e.witness is not None and e.witness.gap < CLOSE for e in faults):
        other = decide(claim.title, [asked(True)], made.seed, meter.budget)
        if other.status not in ("refuted", "undecided"):
            hint = f'only rounded constants differ ({told}); constants="rounded" reads them so'
            fault = Blame("a rounded constant", "", "")
            named = tuple(replace(e, blame=fault) if e in faults else e for e in made.entries)
            return replace(made, entries=named, notes=(*made.notes, hint))
    return named_formula(made, meter, comparison)


CLOSE = 1e-9
"""Formulas with a relative difference below this may differ by rounded constants only."""


def _words(where: Where) -> str:
    return (
        str(where) if isinstance(where, sympy.Basic) else f"{getattr(where, '__name__', 'where')}(...) holds"
    )


def _is_numeric(candidate: object) -> bool:
    if isinstance(candidate, (str, PurePath)):
        raise TypeError(
            f"verify: {str(candidate)!r} is text, which is never run: give a SymPy expression or a function; "
            "of a file, import it and give its function"
        )
    known = (sympy.Basic, sympy.MatrixBase, sympy.NDimArray, Graph)
    return isinstance(candidate, ModuleType) or (callable(candidate) and not isinstance(candidate, known))


def _reference(graph: Graph, wrt: Wrt | None, kind: str) -> tuple[Graph, tuple[str, ...]]:
    """The exact value or derivative, and the names of its outputs."""
    if kind == "value":
        return graph, value_names(graph)
    if kind == "gradient":
        return own_gradient(graph, wrt), tuple(f"∂f/∂{name}" for name in select(graph, wrt).output_names)
    if kind in CHECKED:
        whole = own_pullback(graph, wrt) if kind == "vjp" else own_pushforward(graph, wrt)
        count, structure = len(graph.output_nodes), whole.structure
        assert isinstance(structure, TupleOf)  # the values, and then the products
        made = whole.with_outputs(whole.output_nodes[count:], TupleOf(structure.items[count:]), graph.name)
        dots = ["y_dot"] if count == 1 else [f"y{k}_dot" for k in range(1, count + 1)]
        return made, select(graph, wrt).labels("bar") if kind == "vjp" else tuple(dots)
    made = own_jacobian(graph, wrt) if kind == "jacobian" else own_hessian(graph, wrt)
    return made, ("∂f" if kind == "jacobian" else "∂²f",)
