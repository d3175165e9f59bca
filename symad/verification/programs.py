"""Numeric functions as candidates: how they are called, and the certificate of what was measured."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy

from symad.core.arguments import leaves_of
from symad.core.arrays import Array, ArrayLike
from symad.core.claims import Derivative
from symad.core.graph import Graph, Node, TupleOf, leaves, rebuild
from symad.errors import EvaluationError
from symad.tracing.wrt import Selection
from symad.verification.budget import Meter
from symad.verification.certificate.certificate import Certificate, ExactForm
from symad.verification.claimed_domain import with_values_of
from symad.verification.decide import named_program, versions
from symad.verification.measuring.call_users_code import BadReturn, Caller, on_host
from symad.verification.measuring.measure import differs, measure
from symad.verification.measuring.task import Task
from symad.verification.values.instance_sizes import sizes_beyond, sizes_of, sizes_of_programs
from symad.verification.values.labels import parameters
from symad.verification.values.point_set import FloatPoint, PointSet
from symad.verification.without_values import claimed_of, measured_with_values

MAX_OPERATIONS, MAX_FLOAT_OPERATIONS = 3_000, 1_000_000
"""The maximum number of scalar operations of what a program computes at a size that is tried in addition,
exactly and in floats."""

WIDE_POINTS = 2
"""The number of points at which floats are compared for each large size."""


class Context(tuple[Any, ...]):
    """What ``backward(ctx, y_bar)`` finds: the inputs, in order."""

    @property
    def saved_tensors(self) -> tuple[Array, ...]:
        """The inputs, as PyTorch keeps them."""
        return tuple(self)

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """Every input is differentiated by."""
        return (True,) * len(self)


def as_called(function: Callable[..., ArrayLike], graph: Graph, wrt: Selection) -> Callable[..., ArrayLike]:
    """A vector-Jacobian product as a function (inputs..., y_bar...) -> x_bar of each wrt entry.

    A function of fewer arguments, one more than there are outputs, is called as ``backward(ctx, y_bar...)``;
    if there is one input, so is a function whose first argument is called ctx.
    Of one part for each input those of wrt are taken.
    """
    owners = [k for k, a in enumerate(graph.arguments) for _ in range(leaves(a.structure))]
    count, bars = len(graph.arguments), len(graph.output_nodes)
    try:
        signature: inspect.Signature | None = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None
    first = next(iter(signature.parameters), "") if signature is not None else ""
    alone = first == "ctx" if count == 1 else not _takes(signature, count + bars)
    backward = alone and _takes(signature, 1 + bars)
    positions = [owners[graph.input_nodes.index(entry.nodes[0])] for entry in wrt.entries]

    def called(*values: Any) -> Any:
        context = (Context(values[:count]),) if backward else values[:count]
        returned = function(*context, *values[count:])
        if isinstance(returned, (tuple, list)) and len(returned) == count != len(positions):
            return [returned[k] for k in positions]
        return returned

    called.__name__ = getattr(function, "__name__", "the function")
    if signature is not None and not backward:
        called.__signature__ = signature  # type: ignore[attr-defined]  # for inspect
    return called


def as_one_matrix(
    function: Callable[..., ArrayLike], graph: Graph, wrt: Selection
) -> Callable[..., ArrayLike]:
    """A Jacobian as one array where a function returns it in parts, as JAX and PyTorch do.

    The parts are a tuple with one for each wrt entry, whose axes are those of the output and then those of
    the input; for several outputs they are a tuple or list of such tuples.
    """
    above, below = ([len(n.shape) for n in nodes] for nodes in (graph.output_nodes, wrt.nodes))

    def called(*values: Any) -> Any:
        returned = function(*values)
        rows = returned if len(above) > 1 else (returned,)
        if (
            not isinstance(rows, (tuple, list))
            or len(rows) != len(above)
            or not all(map(is_row, rows, above))
        ):
            return returned
        with suppress(ValueError):  # of lengths that differ: what was returned is refused by its shape
            parts = [[_matrix(p, a) for p in row] for row, a in zip(rows, above, strict=True)]
            return np.vstack([np.hstack(row) for row in parts])
        return returned

    def is_row(row: Any, axes: int) -> bool:
        ranks = [axes + k for k in below]
        return isinstance(row, tuple) and [np.ndim(on_host(part)) for part in row] == ranks

    called.__name__ = getattr(function, "__name__", "the function")
    with suppress(TypeError, ValueError):
        called.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # for inspect
    return called


def _matrix(part: Any, axes: int) -> Array:
    """Rows for the first axes, columns for the others."""
    array = np.asarray(on_host(part))
    return array.reshape(int(np.prod(array.shape[:axes])), -1)


def _takes(signature: inspect.Signature | None, count: int) -> bool:
    """Whether a function may be called with so many arguments."""
    if signature is None:
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


@dataclass(frozen=True)
class Setting:
    """How a program is measured: what is claimed of it, how it is called, within which limits and points."""

    claim: ExactForm
    caller: Caller
    meter: Meter
    seed: int

    @property
    def of(self) -> tuple[Node, ...]:
        """The function whose derivative it is."""
        of = self.claim.derivative
        return () if of is None or of.kind == "value" else of.function

    def task(self, sizes: Mapping[sympy.Symbol, int]) -> Task:
        """What is measured at one choice of sizes."""
        claim, derivative = self.claim, self.claim.derivative or Derivative("", ())
        inputs, concrete = claim.left.input_nodes, claim.left.at(sizes)
        moved = dict(zip(inputs, concrete.input_nodes, strict=True))
        at = f" at {', '.join(f'{s} = {v}' for s, v in sizes.items())}" if sizes else ""
        here = None if claim.domain is None else rebuild((claim.domain,), moved)[0]
        task = Task(
            self.caller, concrete, tuple(n + at for n in claim.names), _taken_apart(concrete),
            claim.assumes, self.meter, here, seed=self.seed, limits=self.caller.limits,
            directions=[moved[n] for n in (*derivative.v, *derivative.w)],
            fixed=parameters(derivative, inputs),
        )  # fmt: skip
        of = Graph(inputs, self.of).at(sizes).output_nodes
        return replace(task, of=of, valued=with_values_of(of)) if of else task


def measured(claim: ExactForm, caller: Caller, meter: Meter, hostile: bool, seed: int) -> Certificate:
    """Measurements of a numeric function inside of a domain; symbolic sizes become numbers.

    A program may be right for odd sizes alone, so it is called at two choices of sizes; and at a few points
    of size 1 and of a large size, at which code that was written for others may be wrong. At sizes beyond
    those of blocks floats are compared, and only what differs there is measured.
    """
    reference, known = claim.left, sizes_of(claim.left, claim.left)
    symbols = [s for s, _ in known]
    numbers = zip(*(values for _, values in known), strict=True)
    first, *others = [dict(zip(symbols, v, strict=True)) for v in numbers] or [{}]
    setting = Setting(claim, caller, meter, seed)
    made = _measured_at(setting, setting.task(first), first, hostile)
    outputs = (*reference.output_nodes, *setting.of)
    ends = sizes_of_programs(outputs, symbols, MAX_OPERATIONS)
    wide = sizes_beyond(outputs, symbols, MAX_FLOAT_OPERATIONS)
    for sizes in [*others, *(c for c in ends if c not in (first, *others)), *wide]:
        task = setting.task(sizes)
        if made.status == "measured" and not (sizes in wide and not differs(task, WIDE_POINTS)):
            more = _measured_at(setting, task, sizes, False, sizes in ends or sizes in wide)
            made = _with_more(made, more, sizes in wide, meter)
    if wide and made.status == "measured":
        made = replace(made, notes=(*made.notes, f"in floats it agrees at {_told(wide)}, too"))
    return made


def _told(wide: Sequence[Mapping[sympy.Symbol, int]]) -> str:
    """Large sizes by the symbol that is large."""
    found = dict[str, list[str]]()
    for sizes in wide:
        largest = max(sizes, key=lambda s: sizes[s])
        found.setdefault(str(largest), []).append(str(sizes[largest]))
    return " and at ".join(f"{name} = {', '.join(numbers)}" for name, numbers in found.items())


def _with_more(made: Certificate, more: Certificate, differs: bool, meter: Meter) -> Certificate:
    """What was measured, with what is seen at other sizes, if that is enough to tell anything."""
    fails = any(not (e.measured or {}).get("points") for e in more.entries) and more.losses
    if more.status == "undecided" and not fails and not differs:
        return made
    return replace(
        made, entries=made.entries + more.entries, losses=made.losses + more.losses,
        seconds=meter.seconds, steps=int(meter.steps),
    )  # fmt: skip


def _measured_at(
    setting: Setting, task: Task, sizes: Mapping[sympy.Symbol, int], hostile: bool, few: bool = False
) -> Certificate:
    """Measurements at one choice of sizes; at a few points, if requested."""
    claim, concrete, meter = setting.claim, task.reference, setting.meter
    found = measure(task, hostile, few)
    kind = claim.derivative.kind if claim.derivative is not None else "value"
    sides = (*concrete.output_nodes, *concrete.output_nodes)
    claimed = claimed_of(sides, task.of, kind, None, task.domain, task.fixed)
    entries = measured_with_values(claimed, found.entries)
    name = getattr(setting.caller.candidate, "__name__", "the function")
    held = found.unseen and all(e.status == "measured" for e in entries)
    notes = [*[found.unseen] * bool(held), *[CHANGES] * setting.caller.changes]
    made = Certificate(
        f"{claim.title}, as {name} computes it", tuple(entries), (), setting.seed, (), versions(),
        meter.seconds, int(meter.steps), (*meter.budget.notes, *notes), tuple(found.losses),
    )  # fmt: skip

    def called(point: FloatPoint) -> list[Any]:
        return [on_host(v) for v in task.flat(setting.caller([point[n] for n in concrete.input_nodes]))]

    inside = PointSet((), setting.seed, domain=task.domain).holds
    return named_program(made, meter, claim, concrete, sizes, task.names, called, inside)


CHANGES = (
    "the function changes an array that it is given, in place: its caller computes with other numbers then"
)


def _taken_apart(concrete: Graph) -> Callable[[Any], list[Any]]:
    """How the outputs are taken out of what a function returns."""
    count = len(concrete.output_nodes)

    def flat(returned: Any) -> list[Any]:
        structure = concrete.structure
        if structure is not None and (not isinstance(structure, TupleOf) or any(structure.items)):
            single = isinstance(structure, TupleOf) and len(structure.items) == 1
            problems = []
            # the structure of one entry may come without a tuple around it
            for form in (structure, structure.items[0]) if single else (structure,):
                try:
                    return leaves_of(form, returned, "the result")
                except EvaluationError as problem:
                    problems.append(problem)
            raise BadReturn(f"returned another structure: {problems[-1]}")
        if count == 1:
            single = (
                isinstance(returned, (tuple, list))
                and len(returned) == 1
                and np.ndim(returned[0]) == len(concrete.output_nodes[0].shape)
            )
            return [returned[0]] if single else [returned]
        if isinstance(returned, (tuple, list)) or np.ndim(returned) > 0:
            return list(returned)
        return [returned]

    return flat
