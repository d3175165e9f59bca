"""Expressions outside the theory: undecided with the reason, never a guess."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import ParamSpec

import sympy

from symad.core.dims import dim_symbols
from symad.core.elsewhere import told_arguments
from symad.core.graph import Graph, topological
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.errors import OutsideError, TraceError
from symad.tracing import as_graph
from symad.tracing.input_symbols import is_function_input
from symad.tracing.ranged import check_decidable
from symad.verification.budget import show
from symad.verification.certificate.certificate import Certificate, Entry
from symad.verification.decide import versions

P = ParamSpec("P")


def undecided_outside(question: Callable[P, Certificate]) -> Callable[P, Certificate]:
    """The question, answered by "undecided" for complex, random, infinite and unevaluated expressions."""

    @told_arguments()
    @wraps(question)
    def asked(*args: P.args, **kwargs: P.kwargs) -> Certificate:
        start = time.monotonic()
        try:
            made = question(*args, **kwargs)
            return replace(made, notes=(*made.notes, *_advice(made)))
        except OutsideError as problem:
            title = "equality" if question.__name__ == "equal" else f"{question.__name__} of an expression"
            reason = f"outside of real functions: {problem}"
            entry = Entry("value", "undecided", "not decided", 1.0, (), reason=reason)
            seed = secrets.randbits(63) if kwargs.get("seed") is None else int(str(kwargs["seed"]))
            return Certificate(title, (entry,), (), seed, (), versions(), time.monotonic() - start, 0, ())
        finally:
            show("")

    return asked


LIMITS = {"the work allowed": "steps", "the memory allowed": "memory", "the time allowed": "seconds"}
"""The fields of `Budget`, by what is said where one of them ends a computation."""


def _advice(certificate: Certificate) -> Iterator[str]:
    """What may help where a limit ended the search."""
    reasons = " ".join(e.reason for e in certificate.entries_of("undecided"))
    ended = [field for words, field in LIMITS.items() if f"{words} " in reasons]
    if ended:
        more = ", ".join(f"{field}=..." for field in ended)
        yield (
            f"budget=symad.verification.Budget({more}) allows more; fewer branches (where, max, abs), "
            "smaller arrays, or the parts of the function one by one need less"
        )


def as_decidable(f: Traceable, wrt: Wrt | None = None, inputs: Inputs | None = None) -> Graph:
    """``f`` as a graph about which there can be a certificate.

    Raises:
        OutsideError: ``f`` has integrals, sums or products with arguments as bounds, or derivatives that are
            not evaluated: their evaluation would use the rules that the certificate is about.
        TraceError: it has no outputs.
    """
    for part in f if isinstance(f, (list, tuple)) else [f]:
        if isinstance(part, (sympy.Basic, sympy.MatrixBase)):
            for derivative in _derivatives(part):
                if not is_function_input(derivative):
                    raise OutsideError(f"the unevaluated Derivative {derivative}; call .doit() first")
    graph = as_graph(f, wrt, inputs)
    if not graph.output_nodes:
        raise TraceError(
            f"{graph.name} has no outputs, so there is nothing to certify; return an array or a number"
        )
    check_decidable(graph)
    return graph


def refuse_free_sizes(question: str, *graphs: Graph) -> None:
    """Refuse sizes that belong to no input, such as n of an identity alone: they get no numbers.

    Raises:
        TraceError: names them.
    """
    nodes = topological([n for graph in graphs for n in graph.output_nodes])
    sizes = {d for n in nodes if n.shape for d in dim_symbols(n.shape)}
    free = sizes.difference(*(graph.dims for graph in graphs))
    if free:
        names = ", ".join(sorted(map(str, free)))
        raise TraceError(
            f"{question}: no input has an axis of the size {names}; give a number for it, or by inputs= an "
            "array of this size"
        )


def _derivatives(expression: sympy.Basic | sympy.MatrixBase) -> list[sympy.Derivative]:
    """The derivatives in an expression; unlike `atoms`, this visits shared parts once."""
    waiting: list[sympy.Basic] = [expression]
    seen: dict[int, sympy.Basic] = {}  # the parts are kept alive, so that no id is used twice
    found = []
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        if isinstance(part, sympy.Derivative):
            found.append(part)
        waiting += part.flat() if isinstance(part, sympy.MatrixBase) else getattr(part, "args", ())
    return found
