"""The questions that every op answers, each declared once; the answers are in the files of the ops.

A question is a generic function, dispatched by plum on the class of the op (and where it matters on
a second class, such as a backend). An answer is a function with its own name, registered in the file
of the op's family::

    @jvp.dispatch
    def einsum_jvp(op: Einsum, y: Node, tangents: Tangents) -> Tangent: ...

Only classes of the first two arguments decide: of all other annotations plum sees Any, so that it can cache
every lookup. An answer that was looked up once is called directly afterwards, because the questions are asked
for every node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce, update_wrapper
from inspect import signature
from operator import or_
from types import UnionType
from typing import Any, Protocol, TypeAlias, TypeVar, get_args, get_origin

import sympy
from plum import Dispatcher, Function

from symad.core.arrays import Array as Array
from symad.core.dims import Dim, Shape
from symad.core.graph import Node, Op
from symad.core.graph import Tangent as Tangent
from symad.core.process import hold_while_forking

_dispatcher = Dispatcher()

Rule = TypeVar("Rule", bound=Callable[..., object])


class Question(Protocol):
    """A generic function."""

    generic: Function
    """Its answers, and the rules by which one is chosen."""
    __name__: str

    def __call__(self, *args: Any) -> Any:
        """The answer for these arguments."""

    def dispatch(self, rule: Rule) -> Rule:
        """Register an answer; its annotations give the classes."""


def question(declared: Callable[..., object]) -> Question:
    """Declare a generic function; its docstring is the question."""
    generic: Function = _dispatcher.abstract(declared)
    lock = getattr(generic, "_lock", None)  # held while rules are looked up for the first time
    if lock is not None:
        hold_while_forking(lock)
    known: dict[tuple[type, ...] | type, Callable[..., Any]] = {}
    by_two = False

    def ask(*args: Any) -> Any:
        key = (type(args[0]), type(args[1])) if by_two else type(args[0])
        rule = known.get(key)
        return look_up(args) if rule is None else rule(*args)

    def look_up(args: tuple[Any, ...]) -> Any:
        """The answer of the rule that plum chooses, which is kept with the classes that decide."""
        nonlocal by_two, known
        kept = known
        rule, _ = generic.resolve_method(args)
        if not kept:
            by_two = len({method.signature.types[1:2] for method in generic.methods}) > 1
        key = (type(args[0]), type(args[1])) if by_two else type(args[0])
        kept[key] = rule
        return rule(*args)

    def dispatch(rule: Rule) -> Rule:
        nonlocal known
        rule.__annotations__ = dict(_deciding(rule)) | {"return": Any}  # plum converts no answer
        generic.dispatch(rule)
        known = {}
        return rule

    asked: Any = update_wrapper(ask, declared)
    asked.generic, asked.dispatch = generic, dispatch
    made: Question = asked
    return made


def _deciding(rule: Callable[..., object]) -> Iterator[tuple[str, Any]]:
    """For each argument of a rule the class, or union of classes, that it is for; Any where that is open.

    Raises:
        TypeError: the first annotation names no class, so that the rule would answer for every op.
    """
    for k, (name, parameter) in enumerate(signature(rule).parameters.items()):
        if k > 1:
            yield name, Any
            continue
        found = parameter.annotation
        words = found.split("|") if isinstance(found, str) else ()
        classes = [_named(word.strip().split("."), rule.__globals__) for word in words] or [found]
        parts = [part for c in classes for part in (get_args(c) if isinstance(c, UnionType) else (c,))]
        # Any is a class from Python 3.11 on, and would answer for every op.
        plain = all(isinstance(part, type) and get_origin(part) is None and part is not Any for part in parts)
        if not plain and k == 0:
            raise TypeError(f"{rule.__name__}: {found!r} names no class that its module knows")
        yield name, reduce(or_, classes) if plain else Any


def _named(words: Sequence[str], known: Mapping[str, Any]) -> Any:
    """What a dotted name of an annotation stands for; None for what the type checker alone knows."""
    return reduce(lambda found, word: getattr(found, word, None), words[1:], known.get(words[0]))


Nodes: TypeAlias = "tuple[Node, ...]"
Tangents: TypeAlias = "tuple[Tangent, ...]"
Flags: TypeAlias = "tuple[bool, ...]"
Values: TypeAlias = "tuple[Any, ...]"
Form: TypeAlias = "sympy.Basic"
Coefficient: TypeAlias = "Callable[[Node, int], Tangent]"
Count: TypeAlias = "Dim"
Forms: TypeAlias = "tuple[Form, ...]"
Shapes: TypeAlias = "tuple[Shape, ...]"


@question
def jvp(op: Op, y: Node, tangents: Tangents) -> Tangent:
    """The tangent of ``y = op(x_1, ..., x_k)``: y_dot = Σ_i (∂op/∂x_i) x_i_dot.

    ``y.args`` are the primals x_i; ``tangents`` has for each a node of the same shape, or ``ZERO``.
    The answer is linear in the tangents, built from linear ops.
    """


@question
def series(op: Op, y: Node, k: int, coefficient: Coefficient) -> Tangent:
    """The coefficient y_k, k ≥ 1, of ``y = op(x_1, ...)`` as a power series in t; a node or ``ZERO``.

    ``coefficient(x, j)`` is x_j: of the arguments for j ≤ k, of y for j < k, and of other nodes in terms of
    which the answer is written. By default the answer is that of the pushforward; see
    `symad.derivatives.jet`.
    """


@question
def transpose(op: Op, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """The cotangents of the arguments in which ``y = op(...)`` is linear.

    ``linear[i]`` is true if argument i is to be transposed; the op is linear in these arguments jointly or
    one at a time. The answer has ``x_i_bar`` (shape of argument i) for them and ``ZERO`` elsewhere, so that
    ⟨y_bar, y⟩ = Σ_i ⟨x_i_bar, x_i⟩ over the linear arguments. Only linear ops answer.
    """


@question
def chosen(op: Op, y: Node, k: int) -> Node | None:
    """The condition under which a change of argument k changes ``y``, or None, which means always.

    It is a condition on the elements of y if the op is elementwise, else on those of the argument. False (a
    constant) means never: comparisons and steps have the derivative 0. Only ops with ``branches`` answer.
    Where a value is NaN the condition of an extreme holds, so that its derivative is NaN, too.
    """


@chosen.dispatch
def always_chosen(op: Op, y: Node, k: int) -> Node | None:
    """None by default: each argument counts everywhere."""
    return None


@question
def batch(op: Op, args: Nodes, batched: Flags, count: Count) -> Node:
    """``op`` applied along a new leading axis of length ``count``.

    ``args[i]`` has the leading axis if ``batched[i]``; the answer always has it.
    """


@question
def evaluate(op: Op, values: Values) -> Array:
    """The value of the op on numbers or arrays: floats, Fractions, mpmath, SymPy, Dual.

    Arrays are NumPy arrays; exact and symbolic numbers are entries of arrays of dtype object. All
    dimensions are ints at this point.
    """


@question
def sympy_form(op: Op, y: Node, forms: Forms) -> Form:
    """The SymPy expression of ``y``, from the expressions of its arguments."""


@question
def flops(op: Op, y: Node) -> Count:
    """Floating-point operations of one evaluation: add, multiply or function count 1 each."""


@question
def definition(op: Op, y: Node) -> Node | None:
    """A node with the same value as ``y``, written in primitives; None if ``y`` is a primitive."""


@question
def sparsity(op: Op, y: Node, patterns: Tangents) -> Any:
    """The boolean dependency pattern (size of y, inputs) of a linear op's value.

    ``patterns[i]`` is the CSR pattern of argument i, or None if it does not depend on the seeds.
    """


@definition.dispatch
def primitive_definition(op: Op, y: Node) -> None:
    """None by default: an op is a primitive."""
    return None


EXAMPLES: dict[type[Op], Callable[[], list[Node]]] = {}


def examples(
    op_class: type[Op],
) -> Callable[[Callable[[], list[Node]]], Callable[[], list[Node]]]:
    """Register example nodes of an op class, on symbolic inputs, for tests and tables."""

    def register(make: Callable[[], list[Node]]) -> Callable[[], list[Node]]:
        EXAMPLES[op_class] = make
        return make

    return register
