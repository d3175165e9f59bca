"""Certificates of symad's own derivatives: both modes and all four Hessians.

For large inputs the identity ⟨∇f, v⟩ = ḟ(v), with v a free input, says as much as all entries of the
gradient together, and costs two evaluations instead of one for each entry. Likewise ⟨w, J v⟩ for Jacobians
and uᵀ H v for Hessians.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from typing import TYPE_CHECKING

import sympy

from symad.core.claims import Derivative
from symad.core.dims import same_dim, size
from symad.core.graph import Graph, Node, TupleOf, topological
from symad.core.process import without_collecting
from symad.core.questions import definition
from symad.core.signatures import Traceable, Wrt
from symad.derivatives.hessian import MODES, hessian
from symad.derivatives.jacobian import gradient, jacobian
from symad.errors import DerivativeError
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.contraction import inner
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import constant, input_node, symbol_of
from symad.tracing.wrt import input_names, select_wrt, symbol_like
from symad.transforms.cotangents import gradient_nodes, pull
from symad.transforms.tangents import dense, push
from symad.verification.budget import Budget, Meter, within
from symad.verification.certificate.certificate import (
    NOT_COMPARED,
    Certificate,
    CertifiedModel,
    Comparison,
    trusted,
)
from symad.verification.decide import decide
from symad.verification.measuring.references import (
    FEW_EVALUATIONS,
    MAX_DUAL_OPERATIONS,
    DualReference,
    NoReference,
    SympyReference,
    packed,
)
from symad.verification.measuring.user_rules import SECOND, entries_of_rules
from symad.verification.outside import as_decidable, refuse_free_sizes, undecided_outside
from symad.verification.proof.with_proofs import DIRECTED, derived_for_all_sizes
from symad.verification.rewriting.restated.by_elements import flat_elements
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.values.instance_sizes import sizes_of

if TYPE_CHECKING:
    import sympy as sp


# ---- derivatives along directions ----------------------------------------------------------------


def directions(nodes: Sequence[Node], suffix: str, taken: set[str]) -> tuple[Node, ...]:
    """Free inputs of the shapes of some nodes."""
    return tuple(
        input_node(symbol_like(f"{getattr(n.op, 'symbol', 'y')}_{suffix}", n.shape, taken), n.shape)
        for n in nodes
    )


def pairing(a: Sequence[Node], b: Sequence[Node]) -> Node:
    """Σ ⟨a_k, b_k⟩."""
    return add(*[inner(x, y) if x.shape else mul(x, y) for x, y in zip(a, b, strict=True)])


ONE = (constant(1),)
"""The weight of the one output of a scalar function: ⟨w, J v⟩ is ⟨∇f, v⟩."""


def bilinear_forward(
    outputs: Sequence[Node], wrt: Sequence[Node], v: Sequence[Node], w: Sequence[Node] = ONE
) -> Node:
    """⟨w, J v⟩, by forward mode."""
    pushed = push(outputs, dict(zip(wrt, v, strict=True)))
    return pairing([dense(t, y) for t, y in zip(pushed, outputs, strict=True)], w)


def bilinear_reverse(
    outputs: Sequence[Node], wrt: Sequence[Node], v: Sequence[Node], w: Sequence[Node] = ONE
) -> Node:
    """⟨Jᵀ w, v⟩, by reverse mode."""
    pulled = pull(outputs, w, wrt)
    return pairing([dense(t, x) for t, x in zip(pulled, wrt, strict=True)], v)


def curvatures(value: Node, wrt: Sequence[Node], u: Sequence[Node], v: Sequence[Node]) -> dict[str, Node]:
    """uᵀ H v in the four modes, by name."""
    first = bilinear_forward([value], wrt, v)
    gradient = _gradient(value, wrt)
    over = push(gradient, dict(zip(wrt, v, strict=True)))
    back = pull(gradient, v, wrt)
    return {
        "forward-over-reverse": pairing([dense(t, x) for t, x in zip(over, wrt, strict=True)], u),
        "reverse-over-forward": pairing(_gradient(first, wrt), u),
        "reverse-over-reverse": pairing([dense(t, x) for t, x in zip(back, wrt, strict=True)], u),
        "forward-over-forward": bilinear_forward([first], wrt, u),
    }


def _gradient(value: Node, wrt: Sequence[Node]) -> list[Node]:
    return [dense(b, x) for b, x in zip(gradient_nodes(value, wrt), wrt, strict=True)]


SYMPY, DUAL, DEFINITIONS = "SymPy's own derivative", "Dual numbers", "the derivative of the definitions"

MAX_ELEMENTS_ONE_BY_ONE = 24
"""The maximum number of elements of wrt with single claims; beyond it a symbolic direction is checked."""

Parts = tuple[Node, ...]


@undecided_outside
def check(
    f: Traceable,
    wrt: Wrt | None = None,
    seed: int | None = None,
    budget: Budget | None = None,
    inputs: Sequence[sp.Basic] | None = None,
) -> Certificate:
    """A certificate of symad's own derivatives of ``f``.

    For a scalar ``f``, the gradient in both modes and the Hessian in all four are compared with independent
    derivatives; for other ``f``, the Jacobian in both modes. The references are SymPy's ``diff`` on explicit
    expressions where these are small, Dual numbers, and the derivative of the definitions of fused ops.
    Where the graph is too large for these, the modes are compared with each other, and `assumes` says so.

    Few inputs are checked entry by entry. With many, the derivative along a direction that is itself an
    input is compared, which is an equivalent claim. With symbolic sizes the modes are compared along
    directions for all sizes, and, where the checker does not derive them itself, with the references at one
    choice of sizes.

    Args:
        f: what `trace` takes.
        wrt: inputs, all by default.
        seed: for the random primes; a new one by default, always recorded.
        budget: limits of time and size.
        inputs: order and grouping of the arguments, as in `trace`; a Python function needs them.

    Returns:
        A `Certificate`: ``status``, and in ``entries`` each derivative with its evidence, or its
        counterexample.

    Raises:
        DerivativeError: a function in ``f`` has no known derivative, or ``f`` has no inputs.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.check(sympy.sin(x * y)).status
        'proved'
    """
    graph = as_decidable(f, wrt, inputs)
    refuse_free_sizes("check", graph)
    nodes, _ = select_wrt(graph, wrt)
    if not nodes:
        raise DerivativeError(f"check: {graph.name} has no inputs, so there is no derivative to check")
    symbols = [symbol_of(n) for n in nodes]
    budget = budget or Budget()
    meter = Meter(budget)
    patience = Meter(budget, budget.steps / 2)
    comparisons = _comparisons(graph, symbols, patience)
    orders = {c.derivative.kind in SECOND for c in comparisons if c.derivative and _is_not_derived(c)}
    if graph.dims and orders:
        sizes = {symbol: values[0] for symbol, values in sizes_of(graph, graph)}
        text = ", ".join(f"{symbol} = {value}" for symbol, value in sizes.items())
        at = _comparisons(graph.at(sizes), [str(s) for s in symbols], patience, orders, f" at {text}")
        comparisons += at
    made = decide(f"derivatives of {graph.name}", comparisons, seed, budget, meter)
    twice = any(c.derivative is not None and c.derivative.kind in SECOND for c in comparisons)
    rules = tuple(entries_of_rules(graph.output_nodes, 1 + twice, made.seed))
    model = CertifiedModel(f, graph, tuple(symbols))
    return replace(made, entries=made.entries + rules, steps=made.steps + int(patience.steps), model=model)


def _is_not_derived(comparison: Comparison) -> bool:
    """Whether the checker does not derive the form with which the others are compared for all sizes."""
    return any(NOT_COMPARED in text for text in comparison.assumes)


@dataclass(frozen=True)
class DerivativeForms:
    """Several forms of one derivative, by name, each in parts, and the references, if there are any."""

    made: Mapping[str, Parts]
    names: tuple[str, ...]
    elsewhere: Mapping[str, Callable[[Meter], Parts]]
    derivative: Derivative
    inputs: Parts = ()
    """The directions, as further inputs."""
    derived: bool = False
    """True if the checker derives the first form, entry by entry."""


AS_ENTRIES = {"slope": "gradient", "curvature": "hessian"}
"""The names of derivatives along directions, entry by entry."""


Explicit = Callable[[Meter], SympyReference]
"""Makes the SymPy expressions of a model once."""


@without_collecting
def _comparisons(
    graph: Graph,
    wrt: Sequence[sympy.Basic],
    patience: Meter,
    orders: Collection[bool] = (False, True),
    at: str = "",
) -> list[Comparison]:
    """The comparisons of one graph, of first (False) and second (True) derivatives.

    References are made within the limit of ``patience``; ``at`` says at which sizes, if they were symbols.
    """
    nodes, _ = select_wrt(graph, list(wrt))
    scalar = len(graph.output_nodes) == 1 and same_dim(size(graph.output_nodes[0].shape), 1)
    total = sum(n for n in (size(x.shape) for x in nodes) if isinstance(n, int))
    explicit = cache(partial(SympyReference, graph.output_nodes, nodes))
    if graph.dims:
        derived = _claims_of_the_checker(graph, nodes, scalar, explicit)
        known = {c.derivative.kind for c in derived}
        claims = [replace(c, derived=AS_ENTRIES[c.derivative.kind] in known)
                  for c in _directional_claims(graph, nodes, scalar)]  # fmt: skip
        claims = [*derived, *claims]
    elif total > MAX_ELEMENTS_ONE_BY_ONE:
        claims = _directional_claims(graph, nodes, scalar)
    else:
        kinds = ("gradient", "hessian") if scalar else ("jacobian",)
        claims = [_by_entries(kind, graph, nodes, explicit) for kind in kinds]
    chosen = [claim for claim in claims if (claim.derivative.kind in SECOND) in orders]
    return [c for claim in chosen for c in _compare(graph, claim, patience, at)]


def _claims_of_the_checker(
    graph: Graph, nodes: Parts, scalar: bool, explicit: Explicit
) -> list[DerivativeForms]:
    """The derivatives that the checker derives for all sizes, entry by entry, without a reference."""
    kinds = ["gradient"] if scalar else []
    if len(nodes) == 1:  # others join axes of several inputs
        kinds.append("hessian" if scalar else "jacobian")
    derived = list[DerivativeForms]()
    for claim in (_by_entries(kind, graph, nodes, explicit) for kind in kinds):
        name, made = next(iter(claim.made.items()))
        if derived_for_all_sizes(claim.derivative, made, name):
            derived.append(replace(claim, made={name: made}, elsewhere={}))
    return derived


# ---- entry by entry -----------------------------------------------------------------------------

ENTRIES: Mapping[str, tuple[str, str, Callable[..., Graph], Sequence[str]]] = {
    "gradient": ("gradient", "∂f/∂{}", gradient, ("reverse", "forward")),
    "jacobian": ("Jacobian", "∂f", jacobian, ("forward", "reverse")),
    "hessian": ("Hessian", "∂²f", hessian, MODES),
}
"""For each kind of derivative its name, those of its outputs, how it is made, and the modes compared."""


def _by_entries(kind: str, graph: Graph, nodes: Parts, explicit: Explicit) -> DerivativeForms:
    """A derivative entry by entry, in all modes; with references by SymPy, Dual numbers and definitions."""
    word, output, derive, modes = ENTRIES[kind]
    symbols = [symbol_of(n) for n in nodes]
    made = {f"{word} ({mode})": derive(graph, symbols, mode).output_nodes for mode in modes}
    shapes = next(iter(made.values()))
    fused = any(definition(n.op, n) is not None for n in topological(graph.output_nodes))

    def entries(reference: SympyReference | DualReference) -> Parts:
        return _cut(reference.second() if kind == "hessian" else reference.first(), shapes)

    elsewhere: dict[str, Callable[[Meter], Parts]] = {}
    if not (graph.dims or _are_compared(graph)):
        elsewhere[SYMPY] = lambda meter: entries(explicit(meter))
    if not graph.dims:
        most = FEW_EVALUATIONS if fused else MAX_DUAL_OPERATIONS
        elsewhere[DUAL] = lambda meter: entries(DualReference(graph.output_nodes, nodes, meter, most))
    if fused:
        plain = graph.with_outputs(expand_definitions(graph.output_nodes), graph.structure)
        elsewhere[DEFINITIONS] = lambda meter: derive(plain, symbols).output_nodes
    names = tuple(output.format(s) for s in symbols) if kind == "gradient" else (output,)
    return DerivativeForms(made, names, elsewhere, Derivative(kind, graph.output_nodes, nodes))


MAX_COMPARED_BY_SYMPY = 8
"""The maximum number of elements of an extreme that SymPy differentiates: 16 take it 10 s."""


def _are_compared(graph: Graph) -> bool:
    """Whether there are extremes of more elements than SymPy differentiates in time."""
    return any(
        isinstance(n.op, Extreme) and prod(n.args[0].shape) > MAX_COMPARED_BY_SYMPY * prod(n.shape)
        for n in topological(graph.output_nodes)
    )


def _cut(entries: Sequence[Node], shapes: Sequence[Node]) -> Parts:
    """Scalar entries in row-major order as arrays of the shapes of some nodes."""
    parts, offset = [], 0
    for node in shapes:
        count = int(size(node.shape))
        parts.append(packed(entries[offset : offset + count], [int(d) for d in node.shape]))
        offset += count
    return tuple(parts)


# ---- along directions ---------------------------------------------------------------------------


def _directional_claims(graph: Graph, nodes: Parts, scalar: bool) -> list[DerivativeForms]:
    """⟨w, J v⟩ in both modes, with w = 1 for a scalar function, and then uᵀ H v in all four."""
    taken = input_names(graph)
    u, v = directions(nodes, "u", taken), directions(nodes, "v", taken)
    outputs = (reshape(graph.output_nodes[0], ()),) if scalar else graph.output_nodes
    w = () if scalar else directions(outputs, "w", taken)
    weights = w or ONE
    word, _, _, modes = ENTRIES["gradient" if scalar else "jacobian"]
    sweeps = {"forward": bilinear_forward, "reverse": bilinear_reverse}
    slopes = {f"{word} ({mode})": (sweeps[mode](outputs, nodes, v, weights),) for mode in modes}

    def by_sympy(meter: Meter) -> Parts:
        slopes = SympyReference(outputs, nodes, meter).first()
        return (pairing(slopes, [e for part in v for e in flat_elements(part)]),)

    def by_dual(along: list[Parts], meter: Meter) -> Parts:
        return (pairing(_cut(DualReference(outputs, nodes, meter).along(along), outputs), weights),)

    once: dict[str, Callable[[Meter], Parts]] = {SYMPY: by_sympy} if scalar else {}
    once[DUAL], twice = partial(by_dual, [v]), {DUAL: partial(by_dual, [u, v])}
    if graph.dims:
        once, twice = {}, {}
    slope, told = Derivative("slope", graph.output_nodes, nodes, v, w), "⟨w, J v⟩ for all v, w"
    told = "⟨∇f, v⟩ for all v" if scalar else told
    claims = [DerivativeForms(slopes, (told,), once, slope, (*v, *w))]
    if scalar:
        bends = {f"Hessian ({mode})": (node,) for mode, node in curvatures(outputs[0], nodes, u, v).items()}
        curvature = Derivative("curvature", graph.output_nodes, nodes, v, u)
        claims.append(DerivativeForms(bends, ("uᵀ H v for all u, v",), twice, curvature, (*u, *v)))
    return claims


def _made(make: Callable[[Meter], Parts], patience: Meter) -> Parts:
    """The reference that a function makes.

    Raises:
        NoReference: it takes too long.
    """
    made = within(patience, partial(make, patience), None)
    if made is None:
        raise NoReference(patience.used_up)
    return made


# ---- comparing ----------------------------------------------------------------------------------


def _compare(graph: Graph, claim: DerivativeForms, patience: Meter, at: str) -> list[Comparison]:
    """Compares each derivative with the first reference, and this with the other references.

    A first form along directions that the checker derives for whole arrays is the reference itself.
    """
    references: dict[str, Parts] = {}
    missing, first = [], next(iter(claim.made))
    directed = graph.dims or claim.derivative.kind in DIRECTED
    made = dict(claim.made)
    derived = claim.derived or (directed and derived_for_all_sizes(claim.derivative, made[first], first))
    for name, make in ({} if derived else claim.elsewhere).items():
        try:
            references[name] = _made(make, patience)
        except NoReference as problem:
            missing.append(f"{name}: {problem}")
    assumes = trusted(graph)
    if not references:
        references = {f"the {first}": made[first]}
        if claim.derived:
            del made[first]
        elif not derived:
            del made[first]  # it has no partner to compare with
            reason = "; ".join(missing) or "sizes are symbolic"
            assumes = (*assumes, f"that {first} is right: {NOT_COMPARED} ({reason})")
    (reference, parts), *others = references.items()
    made.update({f"second reference ({name})": nodes for name, nodes in others})
    inputs = graph.input_nodes + claim.inputs

    def side(outputs: Parts) -> Graph:
        return Graph(inputs, outputs, TupleOf((None,) * len(outputs)), graph.name)

    return [
        Comparison(
            title, side(parts), tuple(f"{title}: {n}{at}" for n in claim.names), assumes, claim.derivative,
            right=side(outputs), left_name=reference, right_name=title,
        )
        for title, outputs in made.items()
    ]  # fmt: skip
