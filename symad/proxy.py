"""Proxies: what a Python function sees while it is traced.

A `Proxy` stands for a node. It has NumPy's operators, indexing, methods and protocols, so that code
written for arrays runs on it and builds the graph; no SymPy expression is built. It has no value:
asking for one (a branch, ``float``, an index into a list) is an error that says what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
import sympy

from symad.dims import Shape, broadcast_shapes, format_shape, size
from symad.errors import TraceError
from symad.graph import Node, Op
from symad.ops.arithmetic import add, div, mul, neg, power, sub
from symad.ops.contraction import Einsum, contract, matmul
from symad.ops.elementwise import apply
from symad.ops.selection import Condition, compare, indicator, logic
from symad.ops.shaping import ScatterAdd, ShapingOp, broadcast_to, stack, take
from symad.ops.sources import ArrayConstant, Constant, array_constant, constant

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""NumPy's functions on proxies; `symad.tracing.numpy_functions` fills it."""

UFUNCS: dict[Any, Callable[..., Any]] = {}
"""NumPy's and SciPy's ufuncs on nodes; `symad.tracing.numpy_ufuncs` fills it."""

METHODS = ["sum", "prod", "mean", "var", "std", "max", "min", "dot", "reshape", "ravel", "transpose", "swapaxes", "squeeze", "clip", "cumsum", "cumprod", "trace", "diagonal", "repeat", "take", "all", "any"]
"""Array methods that are the NumPy functions of the same names."""


@dataclass(frozen=True)
class Session:
    """One traced call: the dimension symbols and the nodes of the SymPy symbols that are inputs."""

    dims: frozenset[Any] = frozenset()
    symbols: dict[Any, Node] = field(default_factory=dict)


SESSION: ContextVar[Session] = ContextVar("symad session", default=Session())  # noqa: B039


class Traced(sympy.Dummy):
    """A scalar proxy inside a SymPy expression; tracing the expression finds the node again."""

    __slots__ = ("node",)
    node: Node


class Proxy:
    """A value of the graph being traced, with the face of a NumPy array."""

    __slots__ = ("_node",)
    __array_priority__ = 1000.0
    _op_priority = 1000.0  # SymPy's operators leave the operation to ours
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, node: Node) -> None:
        """``node``: what the proxy stands for."""
        self._node = node

    # ---- what an array tells about itself

    @property
    def shape(self) -> Shape:
        """The dimensions: ints, or SymPy expressions where an input has symbolic ones."""
        return self._node.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._node.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        return size(self._node.shape)

    @property
    def T(self) -> Proxy:
        """The axes in reverse order."""
        rank = self.ndim
        return Proxy(contract([range(rank)], range(rank - 1, -1, -1), self._node))

    @property
    def real(self) -> Proxy:
        """The proxy itself: every value is real."""
        return self

    def astype(self, dtype: Any, **options: Any) -> Proxy:
        """The proxy itself for floating-point types.

        Raises:
            TraceError: another type; rounding to integers has its own functions.
        """
        if np.dtype(dtype).kind != "f":
            raise TraceError(
                f"astype({np.dtype(dtype)}) of a traced value; use np.floor, np.where or comparisons"
            )
        return Proxy(number(self))

    def copy(self) -> Proxy:
        """The proxy itself; traced values never change."""
        return self

    def conj(self) -> Proxy:
        """The proxy itself: every value is real."""
        return self

    def flatten(self) -> Proxy:
        """All elements in one axis, row by row."""
        return self.reshape(-1)  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """Scalar proxies in nested lists."""
        return [row.tolist() for row in self] if self.ndim else self

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return partial(FUNCTIONS[getattr(np, name)], self)
        ufunc = getattr(np, name, None) if not name.startswith("_") else None
        if isinstance(ufunc, np.ufunc) and ufunc in UFUNCS and ufunc.nin == 1:
            return partial(ufunc, self)  # NumPy calls these on the entries of arrays of objects
        raise AttributeError(f"a traced value has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<traced value of shape {format_shape(self.shape)}>"

    # ---- what a proxy is not

    def _no_value(self, what: str, advice: str) -> NoReturn:
        raise TraceError(
            f"{what} of a traced value of shape {format_shape(self.shape)}: it has no value while the function is "
            f"traced; {advice}"
        )

    def __bool__(self) -> bool:
        self._no_value(
            "the truth value",
            "replace an if, and, or, not, min or max that depends on data by np.where(condition, a, b), "
            "np.logical_and, np.minimum or np.maximum",
        )

    def __float__(self) -> float:
        self._no_value("float()", "use NumPy's functions instead of those of math")

    def __int__(self) -> int:
        self._no_value(
            "int()", "use np.floor, or pass the number as a constant instead of an input"
        )

    def __complex__(self) -> complex:
        self._no_value("complex()", "symad works over the real numbers")

    def __index__(self) -> int:
        self._no_value("an integer", "index arrays by x[k] with a traced k, not lists or range()")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._no_value(
            "an assignment to elements", "build the array with np.where, np.stack or np.concatenate"
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """A scalar as an object, so that ``np.array([x, y])`` works on scalar proxies."""
        if self.ndim:
            self._no_value(
                "a conversion to a NumPy array",
                "use np.stack or np.concatenate instead of np.array, and functions that speak NumPy's protocols "
                "(symad.functions has softmax, logsumexp and others)",
            )
        boxed = np.empty((), dtype=object)
        boxed[()] = self
        return boxed

    def _sympy_(self) -> Any:
        """A symbol of SymPy that stands for this scalar."""
        if self.ndim:
            self._no_value(
                "a SymPy expression", "apply NumPy's functions, or those of symad.functions"
            )
        atom = Traced("traced", real=True)
        atom.node = number(self)
        return atom

    # ---- operators

    def __neg__(self) -> Proxy:
        return Proxy(neg(number(self)))

    def __pos__(self) -> Proxy:
        return self

    def __abs__(self) -> Proxy:
        return Proxy(apply(sympy.Abs, number(self)))

    def __invert__(self) -> Proxy:
        return Proxy(logic("not", condition(self)))

    def __divmod__(self, other: Any) -> Any:
        return elementwise(floor_divide, self, other), elementwise(remainder, self, other)

    def __matmul__(self, other: Any) -> Proxy:
        return Proxy(matrix_product(self, other))

    def __rmatmul__(self, other: Any) -> Proxy:
        return Proxy(matrix_product(other, self))

    def __eq__(self, other: Any) -> Any:
        return (
            elementwise(partial(compare, "=="), self, other)
            if convertible(other)
            else NotImplemented
        )

    def __ne__(self, other: Any) -> Any:
        return (
            elementwise(partial(compare, "!="), self, other)
            if convertible(other)
            else NotImplemented
        )

    # ---- elements

    def __getitem__(self, key: Any) -> Proxy:
        from symad.tracing.indexing import getitem

        return Proxy(getitem(self._node, key))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a traced scalar has no length")
        length = self.shape[0]
        if not isinstance(length, int):
            self._no_value(
                f"the length {length}",
                "it is a symbol; use x.shape[0], and sums or products instead of loops",
            )
        return length

    def __iter__(self) -> Iterator[Proxy]:
        return (Proxy(take(self._node, 0, k)) for k in range(len(self)))

    # ---- NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from symad.tracing.numpy_ufuncs import call_ufunc

        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        from symad.tracing.numpy_functions import call_function

        return call_function(function, args, options)


def _operator(make: Callable[..., Node]) -> tuple[Any, Any]:
    """An operator and its reflection, from a maker of nodes."""

    def forward(self: Proxy, other: Any) -> Any:
        return elementwise(make, self, other) if convertible(other) else NotImplemented

    def backward(self: Proxy, other: Any) -> Any:
        return elementwise(make, other, self) if convertible(other) else NotImplemented

    return forward, backward


def _logical(kind: str) -> Any:
    """One of ``& | ^`` on conditions."""

    def operator(self: Proxy, other: Any) -> Proxy:
        return Proxy(logic(kind, *broadcast(condition(self), condition(other))))

    return operator


def floor_divide(a: Node, b: Node) -> Node:
    """floor(a / b)."""
    return apply(sympy.floor, div(a, b))


def remainder(a: Node, b: Node) -> Node:
    """A − b floor(a / b), with the sign of b, as Python and NumPy define it."""
    return apply(sympy.Mod, a, b)


for _name, _make in {
    "add": add,
    "sub": sub,
    "mul": mul,
    "truediv": div,
    "pow": power,
    "floordiv": floor_divide,
    "mod": remainder,
}.items():
    _forward, _backward = _operator(_make)
    setattr(Proxy, f"__{_name}__", _forward)
    setattr(Proxy, f"__r{_name}__", _backward)
for _name, _relation in {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Proxy, f"__{_name}__", _operator(partial(compare, _relation))[0])
for _name in ("and", "or", "xor"):
    setattr(Proxy, f"__{_name}__", _logical(_name))
    setattr(Proxy, f"__r{_name}__", _logical(_name))


# ---- values to nodes ----------------------------------------------------------------------------


_CONVERTIBLE = (
    Proxy, int, float, Fraction, np.generic, np.ndarray, sympy.Basic, sympy.MatrixBase, list, tuple, Node,
)  # fmt: skip


def convertible(value: Any) -> bool:
    """Whether a value can stand in an operation with a proxy."""
    return isinstance(value, _CONVERTIBLE)


def as_node(value: Any) -> Node:
    """The node of a proxy, number, array, nested list, or SymPy expression.

    Raises:
        TraceError: the value is none of these, or a SymPy symbol in it is no input.
    """
    if isinstance(value, Proxy):
        return value._node
    if isinstance(value, Node):
        return value
    if isinstance(value, (int, float, np.generic)):
        return constant(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, np.ndarray):
        if value.dtype != object:
            return array_constant(value)
        return _stacked(value.tolist()) if value.ndim else as_node(value[()])
    if isinstance(value, (list, tuple)):
        return _stacked(value)
    if isinstance(value, (sympy.Basic, sympy.MatrixBase)):
        return _from_sympy(value)
    return constant(value)


def _stacked(values: Iterable[Any]) -> Node:
    """Nested lists as an array; constant ones become one constant."""
    nodes = alike(values)
    if not nodes:
        return array_constant(np.zeros(0))
    if all(isinstance(n.op, (Constant, ArrayConstant)) for n in nodes):
        return array_constant(np.array([_constant_array(n) for n in nodes]))
    return stack(nodes)


def _constant_array(node: Node) -> Any:
    if isinstance(node.op, ArrayConstant):
        return node.op.array
    value = node.op.value  # type: ignore[attr-defined]
    return value if isinstance(value, (bool, int)) else float(value)


def _from_sympy(expression: Any) -> Node:
    if isinstance(expression, sympy.Number):
        return constant(expression)
    from symad.tracing.functions import trace_inside

    return trace_inside(expression)


_KINDS: dict[type[Op], str] = {}
_SHAPED: WeakKeyDictionary[Node, bool] = WeakKeyDictionary()


def _kind(op_class: type[Op]) -> str:
    """How an op says whether its elements are truth values."""
    if issubclass(op_class, ScatterAdd):
        return "number"
    kinds = {
        ShapingOp: "moved",
        Einsum: "moved",
        Condition: "condition",
        Constant: "constant",
        ArrayConstant: "array",
    }
    return next((name for base, name in kinds.items() if issubclass(op_class, base)), "number")


def is_condition(node: Node) -> bool:
    """Whether a node's elements are true or false; moved elements are what they were before."""
    path: list[Node] = []
    known: bool | None = None
    while known is None:
        op: Any = node.op
        kind = _KINDS.get(type(op)) or _KINDS.setdefault(type(op), _kind(type(op)))
        if kind == "moved":
            known = _SHAPED.get(node)
            path.append(node)
            node = node.args[0]
        elif kind == "constant":
            known = isinstance(op.value, bool)
        elif kind == "array":
            known = np.dtype(op.dtype) == bool
        else:
            known = kind == "condition"
    for moved in path:
        _SHAPED[moved] = known
    return known


def number(value: Any) -> Node:
    """A value as a node of numbers: conditions become 1 and 0."""
    node = as_node(value)
    if not is_condition(node):
        return node
    if isinstance(node.op, Constant):
        return constant(int(node.op.value))
    if isinstance(node.op, ArrayConstant):
        return array_constant(node.op.array.astype(np.int64))
    return indicator(node)


def condition(value: Any) -> Node:
    """A value as a node of truth values: a number is true where it is not 0."""
    node = as_node(value)
    return node if is_condition(node) else compare("!=", node, constant(0))


def alike(values: Iterable[Any]) -> list[Node]:
    """Values as nodes of one kind: conditions if all are, numbers otherwise."""
    nodes = [as_node(v) for v in values]
    return nodes if all(map(is_condition, nodes)) else [number(n) for n in nodes]


def broadcast(*nodes: Node) -> tuple[Node, ...]:
    """The nodes under NumPy's broadcasting rules; scalars join arrays as they are."""
    shapes = {node.shape for node in nodes if node.shape}
    if len(shapes) < 2:
        return nodes
    common = broadcast_shapes(*[node.shape for node in nodes])
    return tuple(broadcast_to(node, common) if node.shape else node for node in nodes)


def elementwise(make: Callable[..., Node], *values: Any) -> Proxy:
    """An elementwise maker applied to values that broadcast together."""
    return Proxy(make(*broadcast(*map(number, values))))


def matrix_product(a: Any, b: Any) -> Node:
    """NumPy's ``a @ b``; stacks of matrices broadcast."""
    left, right = number(a), number(b)
    if len(left.shape) > 2 and len(right.shape) > 2 and left.shape[:-2] != right.shape[:-2]:
        lead = broadcast_shapes(left.shape[:-2], right.shape[:-2])
        left = broadcast_to(left, (*lead, *left.shape[-2:]))
        right = broadcast_to(right, (*lead, *right.shape[-2:]))
    return matmul(left, right)
