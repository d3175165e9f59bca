"""Nodes: immutable and hash-consed, each with an op, arguments and a shape.

This module depends on no particular op. A node is built by `Node.of(op, args)`; building an equal node
returns the same node. Nothing here recurses: graphs may be 10⁵ nodes deep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, NoReturn, TypeAlias, TypeVar

from symad.core.dims import Shape
from symad.core.interning import LOCK, Interned, WeakTable, field_names

OpKind = TypeVar("OpKind", bound="Op")


class Moved(IntEnum):
    """Which elements of its arguments the value of an op consists of; each kind includes those before it."""

    IN_ORDER = 1
    """All elements of its one argument, in the same order; each may be repeated."""
    ALL = 2
    """All elements of its one argument."""
    SOME = 3
    """Elements of its one argument."""
    JOINED = 4
    """Elements of its arguments."""
    PADDED = 5
    """Elements of its arguments, and zeros."""
    COMPUTED = 6
    """Elements that are computed."""


@dataclass(frozen=True, eq=False)
class Op(metaclass=Interned):
    """The operation of a node. Subclasses are frozen dataclasses with hashable fields."""

    linear: ClassVar[bool] = False
    """True if the op is linear in all its arguments jointly."""

    branches: ClassVar[bool] = False
    """True if y depends on some of its arguments only under conditions; see `symad.core.questions.chosen`."""

    total: ClassVar[bool] = False
    """True if y has a value wherever all arguments have."""

    finite_slopes: ClassVar[bool] = False
    """True if y, and its partial derivatives, are finite wherever all arguments are; `total` follows."""

    kinked: ClassVar[bool] = False
    """True if y chooses values, and so may be constant, or a copy of an argument, on an open set only."""

    repeats: ClassVar[bool] = False
    """True if the op only repeats its argument; elementwise ops may broadcast a scalar argument directly."""

    outside: ClassVar[bool] = False
    """True if y comes from outside of the graph: an input, a seed, a value of an enclosing function."""

    literal: ClassVar[bool] = False
    """True if y is one number, known before any array is read; code contains it instead of a name."""

    stored: ClassVar[bool] = False
    """True if y is known when the graph is built: its numbers are fields of the op."""

    several: ClassVar[tuple[str, ...]] = ()
    """The fields that tell the results of one computation apart, its number first; empty for one result."""

    @property
    def moves(self) -> Moved:
        """Whether the elements of y are elements of its arguments, and which."""
        return Moved.COMPUTED

    @property
    def row_numbers(self) -> Sequence[int]:
        """The positions of the arguments that are numbers of rows, of classes, or positions in axes."""
        return ()

    def __reduce__(self) -> tuple[type[Op], tuple[object, ...]]:
        return type(self), tuple(getattr(self, name) for name in field_names(type(self)))


class Tangent:
    """A tangent or cotangent: a `Node`, or the structural `ZERO`."""

    __slots__ = ()


class Zero(Tangent):
    """The zero that follows from structure; no node is ever built for it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZERO"


ZERO = Zero()


class Node(Tangent):
    """One value of the graph: ``op`` applied to ``args``, an array of ``shape``."""

    __slots__ = ("__weakref__", "args", "op", "shape")

    op: Op
    args: tuple[Node, ...]
    shape: Shape

    _nodes: ClassVar[WeakTable] = WeakTable()

    @staticmethod
    def of(op: Op, args: tuple[Node, ...] = ()) -> Node:
        """The node ``op(*args)``, existing or new. Shapes are checked when it is new."""
        key = (op, args)
        with LOCK:
            entry = Node._nodes.get(key)
            node: Node | None = None if entry is None else entry()
            if node is None:
                node = object.__new__(Node)
                node.op = op
                node.args = args
                node.shape = _shape_question(op, args)
                Node._nodes.keep(key, node)
            return node

    def __reduce__(self) -> NoReturn:
        raise TypeError("nodes are saved with symad.save, not pickled")

    def __copy__(self) -> Node:
        return self  # it is immutable

    def __deepcopy__(self, memo: dict[int, object]) -> Node:
        return self

    def over(self, args: tuple[Node, ...]) -> Node:
        """The same op applied to other arguments."""
        return self if args == self.args else Node.of(self.op, args)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"<{self.op} shape {self.shape}>"


def _shape_question(op: Op, args: tuple[Node, ...]) -> Shape:
    rule = SHAPE.get(type(op))
    if rule is None:
        name = type(op).__name__
        raise TypeError(f"the op {name} has no shape: register a rule with symad.core.graph.shape")
    return rule(op, args)


ShapeRule: TypeAlias = Callable[[Any, tuple[Node, ...]], Shape]
"""The shape of an op's value, from the op and its arguments; each rule is for one class of ops."""

SHAPE: dict[type[Op], ShapeRule] = {}
"""The rules for shapes, a plain table because a shape is computed for every node; `shape` fills it."""


def shape(
    op_class: type[Op],
) -> Callable[[ShapeRule], ShapeRule]:
    """Register the shape of an op's value, from its argument nodes; the rule checks the arguments."""

    def register(rule: ShapeRule) -> ShapeRule:
        if SHAPE.get(op_class, rule) is not rule:
            raise TypeError(f"the op {op_class.__name__} has a shape already: {SHAPE[op_class].__qualname__}")
        SHAPE[op_class] = rule
        return rule

    return register


def op_of(node: Node, kind: type[OpKind]) -> OpKind:
    """The op of a node, for the type checker; the caller knows that it is of this kind."""
    assert isinstance(node.op, kind), node
    return node.op


def topological(outputs: Iterable[Node], known: Iterable[Node] = ()) -> list[Node]:
    """All nodes on which the outputs depend, arguments first; the order depends on the graph alone.

    Nodes that are ``known`` are left out, with what only they depend on.
    """
    order: list[Node] = []
    seen: set[Node] = set(known)
    see, put = seen.add, order.append
    for output in outputs:
        if output in seen:
            continue
        see(output)
        waiting: list[tuple[Node, Iterator[Node]]] = []
        node, rest = output, iter(output.args)
        while True:
            for arg in rest:
                if arg not in seen:
                    see(arg)
                    if not arg.args:
                        put(arg)
                        continue
                    waiting.append((node, rest))
                    node, rest = arg, iter(arg.args)
                    break
            else:
                put(node)
                if not waiting:
                    break
                node, rest = waiting.pop()
    return order
