"""Values in a traced function as nodes: numbers, arrays, lists, conditions, SymPy expressions."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache, lru_cache, singledispatch
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import sympy

from symad.core.arrays import Array, ArrayLike
from symad.core.dims import Shape, broadcast_shapes, format_shape
from symad.core.graph import Node, op_of
from symad.core.interning import WeakMemo
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.gathering import ScatterAdd
from symad.ops.arrays.stacking import stack
from symad.ops.basic.contraction import Einsum, matmul
from symad.ops.basic.shaping import ShapingOp, broadcast_to
from symad.ops.basic.sources import ArrayConstant, Constant, array_constant, constant, described
from symad.ops.elementwise.selection import Condition, compare, indicator
from symad.tracing.proxies.sessions import SESSION, Session, seen
from symad.tracing.users_line import users_line

if TYPE_CHECKING:
    from scipy.sparse import sparray


class Wrapped:
    """An object that stands for a node; `symad.tracing.proxies.proxy.Proxy` is the only such class."""

    __slots__ = ("__weakref__", "_owner", "_value", "_views")
    _value: Node
    _owner: Session
    _views: Any

    @property
    def _node(self) -> Node:
        """The node, as a value of the function that is being traced."""
        if SESSION.get() is self._owner:
            return self._value
        return seen(self._value, self._owner)


class Traced(sympy.Dummy):
    """A scalar proxy inside a SymPy expression; tracing the expression returns the proxy's node."""

    __slots__ = ("proxy",)
    proxy: Wrapped


_CONVERTIBLE = (
    Wrapped, int, float, complex, Fraction, np.generic, np.ndarray, sympy.Basic, sympy.MatrixBase, list,
    tuple, Node,
)  # fmt: skip


def convertible(value: ArrayLike) -> bool:
    """True if a value can be an operand beside a proxy."""
    return isinstance(value, _CONVERTIBLE) or is_foreign_array(value) or is_sparse(value)


def is_foreign_array(value: object) -> bool:
    """True for arrays of other libraries that NumPy converts by ``__array__``, such as tensors of PyTorch."""
    return hasattr(type(value), "__array__") and hasattr(type(value), "shape")


def is_sparse(value: object) -> TypeGuard[sparray]:
    """True for the sparse arrays and matrices of SciPy."""
    return type(value).__module__.startswith("scipy.sparse") and hasattr(value, "tocoo")


def _of_foreign_array(value: Any) -> Array:
    """The numbers of an array of another library.

    Raises:
        TraceError: it is no constant, as a tensor that requires a gradient or a value that JAX traces.
    """
    try:
        return np.asarray(value)
    except Exception as error:  # each library has its own
        name = f"{type(value).__module__.partition('.')[0]}'s {type(value).__name__}"
        raise TraceError(
            f"{name} of shape {format_shape(tuple(value.shape))} beside a traced value{users_line()}: it has "
            f"no constant value in NumPy ({str(error).splitlines()[0]}); pass it as an input of the traced "
            "function, or convert it to an array of NumPy first"
        ) from error


def as_node(value: ArrayLike) -> Node:
    """The node of a proxy, number, array, nested list, or SymPy expression.

    Raises:
        TraceError: the value is none of these, or a SymPy symbol in it is not an input.
    """
    if isinstance(value, Wrapped):
        return value._node
    if isinstance(value, Node):
        return value
    if isinstance(value, np.generic):
        return constant(value.item())
    if isinstance(value, np.ndarray):
        if (traced := getattr(value, "_traced", None)) is not None:  # an array filled with traced values
            return as_node(traced)
        if value.dtype != object:
            return array_constant(value)
        return _stacked(value.tolist()) if value.ndim else as_node(value[()])
    if isinstance(value, (list, tuple)):
        return _stacked(value)
    if isinstance(value, (sympy.Basic, sympy.MatrixBase)):
        return node_of_expression(value)
    if (refuse := getattr(value, "_refuse", None)) is not None:  # elements chosen by a condition
        refuse("an array")
    if is_sparse(value):
        raise TraceError(
            f"a sparse array of SciPy of shape {format_shape(value.shape)} beside a traced value"
            f"{users_line()}: only products are traced, A @ x, x @ A and A.dot(x); use A.toarray() elsewhere"
        )
    return as_node(_of_foreign_array(value)) if is_foreign_array(value) else constant(value)


def _stacked(values: Iterable[ArrayLike]) -> Node:
    """Nested lists as an array; constant ones become one constant."""
    nodes = alike(values)
    if not nodes:
        return array_constant(np.zeros(0))
    if all(n.op.stored for n in nodes):
        return array_constant(np.array([_constant_array(n) for n in nodes]))
    return stack(nodes)


def _constant_array(node: Node) -> Any:
    if isinstance(node.op, ArrayConstant):
        return node.op.array
    value = op_of(node, Constant).value
    return value if isinstance(value, (bool, int)) else float(value)


@singledispatch
def node_of_expression(expression: sympy.Basic) -> Node:
    """The node of a SymPy expression that occurs in a traced function."""
    raise NotImplementedError(f"{type(expression).__name__} has no rule for its node")


@node_of_expression.register(sympy.Number)
def node_of_number(expression: sympy.Number) -> Node:
    return constant(expression)


_SHAPED: WeakMemo[Node, bool] = WeakMemo()


@cache
def _kind(op_class: Any) -> str:
    """The name of the rule that determines if the elements of an op are truth values."""
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
    """True if a node's elements are truth values; ops that move elements keep their kind."""
    path: list[Node] = []
    known: bool | None = None
    while known is None:
        op: Any = node.op
        kind = _kind(op.__class__)
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
    kind = type(value)
    if (kind is float or kind is int) and value:
        return _number(value)
    node = as_node(value)
    if _kind(type(node.op)) == "number" or not is_condition(node):
        return node
    if isinstance(node.op, Constant):
        return constant(int(node.op.value))
    if isinstance(node.op, ArrayConstant):
        return array_constant(node.op.array.astype(np.int64))
    return indicator(node)


@lru_cache(maxsize=256, typed=True)
def _number(value: float) -> Node:
    """The constant of a Python number that is not 0; cached, since loops use the same few numbers."""
    return constant(value)


def condition(value: ArrayLike) -> Node:
    """A value as a node of truth values: a number is true where it is not 0."""
    node = as_node(value)
    return node if is_condition(node) else compare("!=", node, constant(0))


def alike(values: Iterable[Any]) -> list[Node]:
    """Values as nodes of one kind: conditions if all are, numbers otherwise."""
    nodes = [as_node(v) for v in values]
    return nodes if all(map(is_condition, nodes)) else [number(n) for n in nodes]


def broadcast(*nodes: Node) -> tuple[Node, ...]:
    """The nodes under NumPy's broadcasting rules; scalars stay scalars."""
    found: Shape = ()
    for node in nodes:
        if node.shape and node.shape != found:
            if found:
                break
            found = node.shape
    else:
        return nodes
    try:
        common = broadcast_shapes(*[node.shape for node in nodes])
    except ShapeError:
        shown = ", ".join(map(described, nodes))
        raise ShapeError(f"{shown} do not broadcast together") from None
    return tuple(broadcast_to(node, common) if node.shape else node for node in nodes)


def matrix_product(a: ArrayLike, b: ArrayLike) -> Node:
    """NumPy's ``a @ b``; stacks of matrices broadcast."""
    left, right = number(a), number(b)
    if len(left.shape) > 2 and len(right.shape) > 2 and left.shape[:-2] != right.shape[:-2]:
        lead = broadcast_shapes(left.shape[:-2], right.shape[:-2])
        left = broadcast_to(left, (*lead, *left.shape[-2:]))
        right = broadcast_to(right, (*lead, *right.shape[-2:]))
    return matmul(left, right)
