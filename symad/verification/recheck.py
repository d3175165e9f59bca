"""Certificates checked again: proofs are replayed without finders, and only the rest is decided anew."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from symad.core.claims import Derivative, Goal
from symad.core.dims import same_dim, same_shape, size
from symad.core.graph import Graph, Node, topological
from symad.derivatives.hessian import hessian
from symad.derivatives.jacobian import gradient, jacobian
from symad.errors import SavingError, ShapeError, SymadError
from symad.ops.basic.arithmetic import add
from symad.ops.basic.contraction import inner
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import symbol_of
from symad.saving.save_load import DAMAGE
from symad.transforms.cotangents import pull
from symad.transforms.tangents import dense, push
from symad.verification.budget import Budget, Meter
from symad.verification.certificate.certificate import (
    METHODS,
    STATUSES,
    Certificate,
    Comparison,
    Entry,
    trusted,
)
from symad.verification.decide import decide, named_formula
from symad.verification.measuring.user_rules import SECOND, entries_of_rules


def rechecked(certificate: Certificate, seed: int | None) -> Certificate:
    """The comparisons of a certificate again.

    Raises:
        SavingError: its graphs cannot be evaluated: the file that it came from was changed.
    """
    try:
        return _rechecked(certificate, seed)
    except SymadError:
        raise
    except (*DAMAGE, RecursionError) as error:
        raise SavingError(
            f"{certificate.title}: the graphs of this certificate have no values; its file is damaged "
            f"({type(error).__name__}: {error})"
        ) from error


def _rechecked(certificate: Certificate, seed: int | None) -> Certificate:
    start, comparisons = time.monotonic(), tuple(map(_with_trusted, certificate.comparisons))
    made = decide(certificate.title, comparisons, seed, proofs=certificate.proofs)
    derived = {goal for proof in made.proofs for goal in proof.goals if goal[0] < len(comparisons)}
    told = _with_own(made.entries, _against_own(comparisons, derived, certificate.title, seed))
    names = dict.fromkeys(name for c in comparisons for name in c.names)
    entries = [entry for name in names for entry in told.get(name, [])]
    rules = _rules(comparisons, made.seed)
    held = [e for e in certificate.entries if e.name not in names and e.name not in {r.name for r in rules}]
    made = replace(made, entries=(*entries, *rules, *map(_as_told, held)), model=certificate.model)
    for comparison in comparisons:
        made = named_formula(made, Meter(Budget()), comparison)
    return replace(made, seconds=time.monotonic() - start)


def _with_own(entries: Sequence[Entry], own: Sequence[Entry]) -> dict[str, list[Entry]]:
    """The entries by their names; one about symad's own derivative where those are no worse."""
    told = dict[str, list[Entry]]()
    for entry in entries:
        told.setdefault(entry.name, []).append(entry)
    for entry in (e for e in own if e.name in told):  # those without elements have no entry
        same = [e for e in told[entry.name] if e.index in (entry.index, "")]
        if entry.status == min((e.status for e in (entry, *same)), key=STATUSES.index):
            told[entry.name] = [e for e in told[entry.name] if e not in same] + [entry]
    return told


def _with_trusted(comparison: Comparison) -> Comparison:
    """The comparison with all that it takes on trust: a file may say less."""
    claim = comparison.derivative
    if claim is None or claim.kind == "value":
        known = trusted(comparison.left, comparison.right, derivatives=False)
    else:
        known = trusted(Graph((), claim.function))
    return replace(comparison, assumes=tuple(dict.fromkeys((*known, *comparison.assumes))))


def _rules(comparisons: Sequence[Comparison], seed: int) -> list[Entry]:
    """What is wrong, or not established, about the rules of users in the functions that claims are about."""
    claims = [c.derivative for c in comparisons if c.derivative is not None and c.derivative.kind != "value"]
    found = [e for c in claims for e in entries_of_rules(c.function, 1 + (c.kind in SECOND), seed)]
    return list({entry.name: entry for entry in found}.values())


def _as_told(entry: Entry) -> Entry:
    """An entry of no comparison, such as that of a rule that cannot be loaded: nothing here shows it."""
    if entry.status not in ("proved", "tested"):
        return entry
    reason = f"the certificate calls it {entry.status}, and holds no claim of this name"
    return replace(entry, status="undecided", bound=1.0, checked=False, reason=reason)


def _against_own(
    comparisons: Sequence[Comparison], derived: set[Goal], title: str, seed: int | None
) -> list[Entry]:
    """What is known of right sides as derivatives of the function that a file says they are about.

    The left sides of a file may be derivatives of something else. What the checker has derived is left out.
    """
    own = []
    for k, c in enumerate(comparisons):
        rest = [o for o, done in enumerate(_whole_outputs(k, c, derived)) if not done]
        if rest and (made := _own_derivative(c)):
            own += [replace(c, left=made).alone(o) for o in rest]
    found = decide(title, own, seed).entries if own else ()
    return [entry for entry in found if entry.status not in ("proved", "tested")]


def _own_derivative(comparison: Comparison) -> Graph | None:
    """The derivative that a comparison is about, by symad's rules."""
    claim, right = comparison.derivative, comparison.right
    if claim is None:
        return None
    kinds: dict[str, Callable[..., Graph]] = {"gradient": gradient, "jacobian": jacobian, "hessian": hessian}
    graph = Graph(right.input_nodes, claim.function)
    if claim.kind in kinds:
        graph = kinds[claim.kind](graph, [symbol_of(node) for node in claim.wrt])
    elif claim.kind != "value":
        graph = Graph(right.input_nodes, tuple(_along(claim)))
    parts, wanted = graph.output_nodes, right.output_nodes
    if len(parts) != len(wanted) or not all(
        same_dim(size(p.shape), size(w.shape)) for p, w in zip(parts, wanted, strict=True)
    ):
        raise ShapeError(f"{comparison.title}: the {claim.kind} and the candidate have other shapes")
    fitted = [reshape(p, w.shape) for p, w in zip(parts, wanted, strict=True)]
    return graph.with_outputs(fitted, right.structure)


def _along(claim: Derivative) -> list[Node]:
    """Products of a derivative with directions; see `Derivative`.

    Raises:
        ShapeError: the directions are no directions of the function.
    """
    x, y, v, w = claim.wrt, claim.function, claim.v, claim.w
    if not set(x).isdisjoint(topological([*v, *w])):  # a second sweep would differentiate them, too
        raise ShapeError(f"the directions of a claim about a {claim.kind} depend on what it is by")
    if claim.kind == "pullback":
        _require_alike(claim, w, y)
        return [dense(bar, node) for bar, node in zip(pull(y, w, x), x, strict=True)]
    _require_alike(claim, v, x)
    y_dot = [dense(dot, node) for dot, node in zip(push(y, dict(zip(x, v, strict=True))), y, strict=True)]
    if claim.kind == "curvature":
        _require_alike(claim, w, x)
        twice = push(y_dot, dict(zip(x, w, strict=True)))
        return [dense(dot, node) for dot, node in zip(twice, y, strict=True)]
    if claim.kind == "slope" and w:
        _require_alike(claim, w, y)
        return [add(*map(inner, w, y_dot)) if len(y) > 1 else inner(w[0], y_dot[0])]
    return y_dot


def _require_alike(claim: Derivative, directions: Sequence[Node], of: Sequence[Node]) -> None:
    alike = len(directions) == len(of)
    if not alike or not all(same_shape(d.shape, a.shape) for d, a in zip(directions, of, strict=True)):
        raise ShapeError(f"the directions of a claim about a {claim.kind} have other shapes")


def _whole_outputs(k: int, comparison: Comparison, proved: set[Goal]) -> list[bool]:
    """For each output of a comparison whether all of its elements are proved.

    Elements are counted and not listed: a file may claim as many as it likes.
    """
    if comparison.is_symbolic:
        return [(k, o, 0) in proved for o in range(len(comparison.right.output_nodes))]
    sizes = [math.prod(map(int, node.shape)) for node in comparison.right.output_nodes]
    found = Counter(o for at, o, e in proved if at == k and o < len(sizes) and 0 <= e < sizes[o])
    return [found[o] == count for o, count in enumerate(sizes)]


METHODS.update(recheck=rechecked)
