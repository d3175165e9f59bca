"""`verify_function`: a certificate for the forward and backward pass of an autograd function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from symad.core.graph import Graph, TupleOf
from symad.core.identifiers import brief
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.derivatives.sweeps import pullback
from symad.torch.passes import Passes, with_manners
from symad.tracing import as_graph
from symad.verification import Budget, Certificate, verify
from symad.verification.certificate.blame import Blame
from symad.verification.certificate.certificate import Entry
from symad.verification.measuring.call_users_code import refuse_arguments
from symad.verification.measuring.precisions import precision_named

if TYPE_CHECKING:
    import sympy as sp


def verify_function(
    function: Any,
    f: Traceable,
    wrt: Wrt | None = None,
    *,
    inputs: Inputs | None = None,
    where: sp.Basic | None = None,
    order: int = 1,
    hostile: bool = True,
    budget: Budget | None = None,
    computed_in: str | None = None,
    seed: int | None = None,
) -> Certificate:
    """A certificate of an autograd function against a formula: its values, and the results of backward.

    The function is called with float64 tensors in the order of the graph's arguments (integer inputs as
    int64) and differentiated by PyTorch with random cotangents: this measures what its backward saves and
    returns. The reference has 50 digits. Beside this its manners are tried: cotangents that are strided or
    expanded, a second backward, and whether inputs and cotangents are left as they were.

    Args:
        function: a subclass of ``torch.autograd.Function``, a module, or a function of tensors.
        f: its formula, an argument of `symad.trace`.
        wrt: the inputs whose cotangents are compared, all by default. An input for which backward returns
            None, such as the targets of a loss, has the cotangent 0 in PyTorch: leave it out of ``wrt``.
        inputs: order and grouping of the arguments, as in `symad.trace`.
        where: the domain of the claim, as in `symad.verify`.
        order: 2 also compares the derivative of the backward pass (double backward).
        hostile: as in `symad.verify`.
        budget: limits of work.
        computed_in: "float32", "float16" or "bfloat16" for a function that computes in this type, or takes
            no other: it is called with tensors of it, and judged by roundings of it.
        seed: of the points, as in `symad.verify`.

    Returns:
        A `Certificate` with entries for the values, for each cotangent, and for each manner.

    Raises:
        ValueError: order is neither 1 nor 2, or there is no such type.
        TypeError: the function cannot be called, takes other inputs or these in another order, or returns a
            value of another shape.
        TraceError: ``f`` cannot be traced.

    Example:
        >>> import sympy, symad.torch, torch
        >>> class Square(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x**2
        ...     @staticmethod
        ...     def backward(ctx, x_bar):
        ...         return x_bar * ctx.saved_tensors[0]  # the factor 2 is missing
        >>> symad.torch.verify_function(Square, sympy.Symbol("x", real=True) ** 2)
        <Certificate Square against f: REFUTED (1 of 2 entries differ: missing factor 2)>
    """
    if order not in (1, 2):
        raise ValueError(f"verify_function: order is 1, or 2 for double backward, not {order!r}")
    if not callable(function):
        raise TypeError(
            f"verify_function: the first argument is {brief(function)}; give an autograd function, a module "
            "or a function of tensors, and its formula after it"
        )
    if isinstance(function, torch.autograd.Function):
        name = type(function).__name__
        raise TypeError(f"verify_function: give the class {name}, not an instance of it: without ()")
    graph = as_graph(f, wrt, inputs)
    name = getattr(function, "__name__", type(function).__name__)
    called = function.apply if _is_autograd(function) else function
    refuse_arguments(_forward(function), [a.name for a in graph.arguments], f"{name}'s forward")
    limits = precision_named(computed_in, "verify_function")
    passes = Passes(called, graph, wrt, getattr(torch, limits.name))
    options: Any = {
        "hostile": hostile, "budget": budget, "where": where, "computed_in": computed_in, "seed": seed,
    }  # fmt: skip
    with one_thread():
        parts = [
            verify(graph, wrt, value=named(passes.forward, name), **options),
            verify(graph, wrt, vjp=named(passes.backward, f"{name}'s backward"), **options),
        ]
        if order == 2:
            second = cotangents(graph, wrt)
            made = verify(second, vjp=named(passes.double_backward, f"{name}'s double backward"), **options)
            parts.append(_of_second_order(made))
        if all(part.status == "measured" for part in parts):
            parts.append(with_manners(parts[1], passes, graph, limits))
    return _joined(f"{name} against {graph.name}", [parts[0], *map(_with_refusals, parts[1:])])


REFUSALS = ("incorrect number of gradients", "invalid gradient", "expected Variable")
"""What PyTorch says of a backward whose results it cannot use: their number, shapes or types are wrong."""


def _with_refusals(part: Certificate) -> Certificate:
    """The certificate with the entries refuted of which PyTorch used no result of backward."""
    refused = {x.name: x.word for x in part.losses if any(words in x.word for words in REFUSALS)}

    def judged(entry: Entry) -> Entry:
        if entry.status != "undecided" or entry.name not in refused:
            return entry
        said = refused[entry.name].removeprefix("raised RuntimeError: ")
        blame = Blame(f"PyTorch refuses what backward returns: {said}", "", "")
        return replace(entry, status="refuted", bound=0.0, blame=blame, reason="")

    losses = tuple(x for x in part.losses if x.name not in refused)
    return replace(part, entries=tuple(map(judged, part.entries)), losses=losses)


@contextmanager
def one_thread() -> Iterator[None]:
    """Calls on small tensors by one thread: several take up to ten times as long where cores are busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


SAVED = (
    "double backward takes for a constant what forward computed and saved, and what is detached: save inputs "
    "and outputs alone, and compute the rest again in backward"
)


def _of_second_order(made: Certificate) -> Certificate:
    """The certificate of a double backward, whose cotangents are told from those of the first."""

    def told(name: str) -> str:
        return f"{name}, second order"

    def explained(entry: Entry) -> Entry:
        mistake = entry.blame.mistake if entry.blame else ""
        lost = entry.status == "refuted" and ("missing" in mistake or "not be zero" in mistake)
        return replace(entry, name=told(entry.name), reason=entry.reason + f"; {SAVED}" * lost)

    return replace(
        made,
        entries=tuple(map(explained, made.entries)),
        losses=tuple(replace(x, name=told(x.name)) for x in made.losses),
    )


def _forward(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose parameters are the inputs: the ``forward`` of a class or module, without ctx."""
    forward: Callable[..., Any] = getattr(function, "forward", function)
    if forward is function:
        return function
    own = list(inspect.signature(forward).parameters)
    return partial(forward, None) if own[:1] == ["ctx"] else forward


def _is_autograd(function: object) -> bool:
    return isinstance(function, type) and issubclass(function, torch.autograd.Function)


Result = TypeVar("Result")


def named(function: Callable[..., Result], name: str) -> Callable[..., Result]:
    """A function of any arguments under a name, for certificates."""

    def called(*values: object) -> Result:
        return function(*values)

    called.__name__ = name
    return called


def cotangents(graph: Graph, wrt: Wrt | None) -> Graph:
    """(x..., ȳ...) -> x̄..., without the values."""
    full = pullback(graph, wrt)
    count = len(graph.output_nodes)
    structure = full.structure
    assert isinstance(structure, TupleOf)  # the values, and then the cotangents
    return full.with_outputs(full.output_nodes[count:], TupleOf(structure.items[count:]), "backward")


def _joined(title: str, parts: Sequence[Certificate]) -> Certificate:
    """A certificate with the entries of several."""
    entries = tuple(e for part in parts for e in part.entries)
    return replace(
        parts[0],
        title=title,
        entries=entries,
        comparisons=tuple(c for part in parts for c in part.comparisons),
        losses=tuple(x for part in parts for x in part.losses),
        notes=tuple(dict.fromkeys(n for part in parts for n in part.notes)),
        seconds=sum(part.seconds for part in parts),
        steps=sum(part.steps for part in parts),
    )
