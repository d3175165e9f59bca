"""The names of mistakes in the refuted entries of a certificate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, compress, pairwise, takewhile
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from symad.core.arrays import ArrayLike
from symad.core.dims import is_concrete
from symad.core.graph import Graph, Node
from symad.errors import SymadError
from symad.ops.basic.sources import symbol_of
from symad.verification.certificate.blame import Blame, is_vague
from symad.verification.certificate.certificate import Certificate, Entry
from symad.verification.certificate.domain_repair import REPAIRED
from symad.verification.fields.prime_fields import Array
from symad.verification.mistakes.changes import (
    confused,
    extra_terms,
    missing_paths,
    next_in_loops,
    paths_counted_twice,
    places_of,
    several_paths,
    transposed_in_loops,
    wrong_factors,
)
from symad.verification.mistakes.elements import moved, of_matrix
from symad.verification.mistakes.local import lengths
from symad.verification.mistakes.network import (
    ChainNetwork,
    Change,
    Difference,
    TooManyEdges,
    name_in,
    network_of,
)
from symad.verification.mistakes.slopes import products_of_derivatives, wrong_slopes, wrong_softmax
from symad.verification.mistakes.whole import (
    flat_values,
    of_directions,
    of_elements,
    of_inputs,
    of_numbers,
    of_the_other_product,
    scaled,
)
from symad.verification.mistakes.words import Words, expanded
from symad.verification.values.point_set import FloatPoint, PointSet

if TYPE_CHECKING:
    from symad.verification.certificate.witness import Nested

POINTS, TRIED = 5, 24
"""The number of points at which derivatives are compared, and how many are tried."""

MIN_POINTS = 3
"""The smallest number of points at which the right derivative is not the rest of a cancellation."""

MAX_ELEMENTS, SECONDS = 2_000, 5.0
"""The maximum number of elements of a derivative whose mistake is named, and the time after which no further
kind of mistake is tried."""


NAMELESS = (SymadError, ArithmeticError, ValueError, TypeError, NotImplementedError, np.linalg.LinAlgError)
"""What a graph that is evaluated raises at points where it has no value, and ops without a rule."""


@dataclass(frozen=True)
class Asked:
    """A derivative written by hand, and the function it is claimed to be of; all sizes are numbers.

    Args:
        function: the function, with its inputs.
        wrt: the inputs by which it is differentiated.
        reference: the right derivative; its further inputs are the directions.
        found: the candidate at a point: a value for each output of the reference. It may raise anything.
        forward: whether the directions are tangents.
        inside: whether something is claimed at a point.
    """

    function: Graph
    wrt: Sequence[Node]
    reference: Graph
    found: Callable[[FloatPoint], Sequence[ArrayLike]]
    forward: bool
    inside: Callable[[FloatPoint], bool]


def with_names(certificate: Certificate, asked: Asked, names: Sequence[str]) -> Certificate:
    """The certificate with the names of mistakes in refuted entries that have none.

    ``names`` are those of the outputs of the reference.
    """
    without = {e.name for e in certificate.entries if _is_open(e)}
    wrong = [k for k, name in enumerate(names) if name in without]
    if not wrong:
        return certificate
    witnesses = [e.witness.point for e in certificate.entries if _is_open(e) and e.witness is not None][:1]
    with np.errstate(all="ignore"):
        try:
            told = names_of_mistakes(asked, wrong, witnesses)
        except NAMELESS:
            return certificate
    return _with({names[k]: text for k, text in told.items()}, certificate)


def _is_open(entry: Entry) -> bool:
    return entry.status == "refuted" and is_vague(entry.blame.mistake if entry.blame else "")


def _has_no_place(entry: Entry) -> bool:
    """Whether a wrong entry has no name, or that of a number that would repair the whole matrix."""
    repaired = entry.blame is not None and entry.blame.mistake.startswith(REPAIRED)
    return _is_open(entry) or (entry.status == "refuted" and repaired)


def _with(
    by_name: Mapping[str, str], certificate: Certificate, wanted: Callable[[Entry], bool] = _is_open
) -> Certificate:
    entries = [
        replace(e, blame=replace(e.blame or Blame("", "", ""), mistake=by_name[e.name]))
        if wanted(e) and e.name in by_name
        else e
        for e in certificate.entries
    ]
    return replace(certificate, entries=tuple(entries))


def with_entries(
    certificate: Certificate, asked: Asked, names: Sequence[str], rows: Sequence[Node]
) -> Certificate:
    """The certificate of a Jacobian or Hessian with the entries and blocks that are wrong, if they are few.

    ``rows`` are the nodes whose elements its rows belong to.
    """
    faults = [e for e in certificate.entries if _has_no_place(e) and e.name in names]
    shape = asked.reference.output_nodes[0].shape
    if not faults or not is_concrete(shape) or prod(shape) > MAX_ELEMENTS:
        return certificate
    witnesses = [e.witness.point for e in faults if e.witness is not None][:1]
    with np.errstate(all="ignore"):
        points, found, right, eps = _compared(asked, witnesses)
    if len(points) < MIN_POINTS:
        return certificate
    refuted = [e for e in certificate.entries if e.status == "refuted" and e.name == faults[0].name]
    each = {e.witness.index for e in refuted if e.witness is not None and e.index.startswith("[")}
    text = of_matrix(Difference(right, found, eps, [slice(0, prod(shape))]), rows, asked.wrt, each)
    return _with({faults[0].name: text}, certificate, _has_no_place) if text else certificate


def names_of_mistakes(
    asked: Asked, wrong: Sequence[int], witnesses: Sequence[Mapping[str, Nested]] = ()
) -> dict[int, str]:
    """For outputs of the reference that are wrong the names of the mistakes, as far as there are any."""
    parts = _parts(asked)
    if parts is None:
        return {}
    points, found, right, eps = _compared(asked, witnesses)
    if not points:
        return {}
    difference = Difference(right, found, eps, parts)
    wrong = [k for k in wrong if difference.shows(parts[k])]
    if not wrong or not _is_told(difference, wrong):
        return {}
    outputs, names = expanded(asked.function)
    directions = [n for n in asked.reference.input_nodes if n not in asked.function.input_nodes]
    ones = [np.ones(lengths(o)) for o in outputs]

    def network(points: Sequence[FloatPoint]) -> ChainNetwork:
        seeds = [[p[n] for n in directions] if directions else ones for p in points]
        return network_of(outputs, asked.wrt, seeds, points, asked.forward)

    try:
        net = network(points)
        steady = Difference(right, net.result, eps, parts).right_points
        if not steady.all():  # the rest of a cancellation says nothing
            points = list(compress(points, steady))
            difference = replace(difference, right=right[steady], found=found[steady])
            net = network(points)
        net.leave_out_shifts()
    except TooManyEdges:
        return {}
    if len(points) < MIN_POINTS or not all(map(difference.shows, (parts[k] for k in wrong))):
        return {}
    difference = replace(difference, counts=net.counts)
    told = [str(symbol_of(n)) for n in directions] or ["1"] * len(outputs)
    return _first_names(_stages(net, Words(names), parts, told, asked.reference, points, difference),
                        difference, wrong)  # fmt: skip


def _parts(asked: Asked) -> list[slice] | None:
    """Where each output lies; None where the derivative has other shapes, or is too large."""
    reference = asked.reference
    shapes = [n.shape for n in (asked.function.output_nodes if asked.forward else asked.wrt)]
    if [o.shape for o in reference.output_nodes] != shapes or not all(map(is_concrete, shapes)):
        return None
    ends = np.cumsum([0, *(int(np.prod(lengths(o))) for o in reference.output_nodes)])
    if ends[-1] > MAX_ELEMENTS:
        return None
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def _first_names(
    stages: Iterator[Iterable[Change]], difference: Difference, wrong: Sequence[int]
) -> dict[int, str]:
    """The first change that explains all that is wrong, or else each output by itself; for some seconds."""
    every, found = range(len(difference.parts)), dict[int, str]()
    end = time.process_time() + SECONDS

    def early(change: Change) -> bool:
        return time.process_time() < end

    for stage in stages:
        changes = sorted(takewhile(early, stage), key=lambda change: change.rank)
        names = (name_in(c, difference, wrong, every) for c in takewhile(early, changes))
        together = next(filter(None, names), "")
        for k in [k for k in wrong if k not in found]:
            alone = (name_in(c, difference, [k], [k]) for c in takewhile(early, changes))
            if told := together or next(filter(None, alone), ""):
                found[k] = told
        if len(found) == len(wrong) or time.process_time() > end:
            break
    return found


def _is_told(difference: Difference, wrong: Sequence[int]) -> bool:
    return bool(all(np.all(np.isfinite(difference.of(difference.parts[k]))) for k in wrong))


def _stages(
    net: ChainNetwork,
    words: Words,
    parts: Sequence[slice],
    directions: Sequence[str],
    reference: Graph,
    points: Sequence[Mapping[Node, Array]],
    difference: Difference,
) -> Iterator[Iterable[Change]]:
    """Changes in stages: a later stage is asked only for what the earlier ones do not explain."""

    def evaluate(point: Mapping[Node, Array]) -> Array:
        return flat_values(reference.output_nodes, point)

    yield scaled(net, parts)
    yield chain(of_elements(net, parts), of_directions(net, directions) if directions[0] != "1" else ())
    places, right = places_of(net, words), difference.right
    yield chain(missing_paths(net, places), paths_counted_twice(net, places))
    yield chain(of_numbers(net.order, reference, points, right), wrong_softmax(net, words))
    yield chain(several_paths(net, words), wrong_slopes(net, words), products_of_derivatives(net, words))
    yield moved(net, places, words)
    yield wrong_factors(net, places, words)
    yield chain(
        confused(net, words, difference),
        transposed_in_loops(net, words),
        next_in_loops(net, words),
        of_inputs(evaluate, points, difference),
        extra_terms(net, words),
        of_the_other_product(net),
    )


# ---- points -------------------------------------------------------------------------------------


def _compared(
    asked: Asked, witnesses: Sequence[Mapping[str, Nested]]
) -> tuple[list[FloatPoint], Array, Array, float]:
    """Points at which both have values, the values flat, and the roundoff of the candidate's numbers."""
    reference = asked.reference
    shapes = [lengths(o) for o in reference.output_nodes]
    drawn = PointSet((*reference.output_nodes, *asked.function.output_nodes), inputs=reference.input_nodes)
    tried, inputs = drawn.plain(TRIED), reference.input_nodes
    known = [p for w in witnesses if (p := _read(w, inputs, drawn.integers)) is not None]
    points, found, right = list[FloatPoint](), list[Array](), list[Array]()
    eps = float(np.finfo(float).eps)
    for point in [*known, *tried]:
        if len(points) >= POINTS:
            break
        if not asked.inside(point):
            continue
        try:
            values = [np.asarray(v) for v in asked.found(point)]
            exact = flat_values(reference.output_nodes, point)
        except Exception:  # whatever the candidate raises: this point tells nothing
            continue
        if [v.size for v in values] != [int(np.prod(s)) for s in shapes] or any(map(np.iscomplexobj, values)):
            continue
        made = np.concatenate([v.astype(float).ravel() for v in values])
        if np.all(np.isfinite(made)) and np.all(np.isfinite(exact)):
            points.append(point)
            found.append(made)
            right.append(exact)
            eps = max([eps, *(float(np.finfo(v.dtype).eps) for v in values if v.dtype.kind == "f")])
    empty = np.zeros((0, 0))
    return points, np.stack(found) if found else empty, np.stack(right) if right else empty, eps


def _read(
    witness: Mapping[str, Nested], inputs: Sequence[Node], integers: Mapping[Node, tuple[int, int]]
) -> FloatPoint | None:
    """A point as a certificate shows it."""
    point: FloatPoint = {}
    for node in inputs:
        name = str(symbol_of(node))
        if name not in witness:
            return None
        numbers = np.asarray(_numbers(witness[name]), dtype=np.float64)
        value = numbers.astype(np.int64) if node in integers else numbers
        point[node] = value if node.shape else value.item()
    return point


def _numbers(text: Nested) -> list[object] | float:
    if isinstance(text, list):
        return [_numbers(t) for t in text]
    return float(Fraction(text))
