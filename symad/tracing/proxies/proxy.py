"""Proxies: the values that a Python function computes with while it is traced.

A `Proxy` stands for a node. It has NumPy's operators, indexing, methods and protocols, so that code
written for arrays runs on it and builds the graph; no SymPy expression is built. It has no value:
code that needs one (a branch, ``float``, an index into a list) raises an error that says what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
import sympy

from symad.core.arrays import ArrayLike, Index
from symad.core.dims import Shape, format_shape, is_concrete, size
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.stacking import element
from symad.ops.basic.arithmetic import neg
from symad.ops.basic.contraction import contract, matrix_transpose
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import compare, logic
from symad.tracing.proxies.arithmetic import ARITHMETIC, KEEPS_CONDITIONS, SIGNS, floor_divide, remainder
from symad.tracing.proxies.array_protocol import (
    METHODS,
    UFUNCS,
    VIEW,
    Valueless,
    call_function,
    call_ufunc,
    check_owned,
    function_of_numpy,
    read_elements,
    write_elements,
)
from symad.tracing.proxies.sessions import SESSION
from symad.tracing.proxies.wrapped import (
    Traced,
    as_node,
    broadcast,
    convertible,
    is_condition,
    is_sparse,
    matrix_product,
    number,
)
from symad.tracing.users_line import users_line

MAX_SCALARS = 1000
"""The number of elements up to which a traced value becomes an array of scalars if NumPy converts it.

Each element is then a separate node; larger arrays should stay whole.
"""


class Proxy(Valueless):
    """A value of the graph being traced, with the interface of a NumPy array."""

    __slots__ = ()
    __array_priority__ = _op_priority = 1000.0  # operators of SymPy and of pandas leave the operation to ours
    __pandas_priority__ = 5000
    __hash__ = None  # type: ignore[assignment]  # says that there is none

    def __init__(self, node: Node) -> None:
        """``node``: the node for which the proxy stands."""
        self._value = node
        self._owner = owner = SESSION.get()
        if owner.frames is not None and node.args:  # inputs and constants need no names
            owner.frames.note()

    # ---- attributes of an array

    @property
    def shape(self) -> Shape:
        """The dimensions: ints, or SymPy expressions where an input has symbolic ones."""
        return self._value.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._value.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        return size(self._value.shape)

    @property
    def T(self) -> Proxy:
        """The axes in reverse order."""
        rank = self.ndim
        return self._viewed(contract([range(rank)], range(rank - 1, -1, -1), self._node))

    @property
    def mT(self) -> Proxy:
        """The last two axes swapped."""
        return self._viewed(matrix_transpose(self._node))

    @property
    def dtype(self) -> Any:
        """Double precision, for code that asks; the precision is chosen when a graph is lowered."""
        return np.dtype(np.float64)

    @property
    def real(self) -> Proxy:
        """The proxy itself: every value is real."""
        return self

    @property
    def flags(self) -> Any:
        """The flags of an array that owns its memory, for code that tests if elements may be assigned to."""
        return np.empty(0).flags

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

    def copy(self, order: str = "C") -> Proxy:
        """A separate value: assignments to its elements do not change this one."""
        return self._function(np.copy, order=order)

    def conj(self) -> Proxy:
        """The proxy itself: every value is real."""
        return self

    def flatten(self, order: str = "C") -> Proxy:
        """All elements in one axis, in row-major order, or in column-major order for ``order="F"``."""
        return self.ravel(order)

    def ravel(self, order: str = "C") -> Proxy:
        """All elements in one axis, in row-major order, or in column-major order for ``order="F"``."""
        return self._function(np.ravel, order=order)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Proxy:
        """The elements under another shape, given as a tuple or as separate numbers."""
        whole = shape[0] if len(shape) == 1 else shape
        return self._function(np.reshape, whole, order=order)

    def transpose(self, *axes: Any) -> Proxy:
        """Axes in another order, given as a tuple or as separate numbers; reversed by default."""
        return self._function(np.transpose, axes[0] if len(axes) == 1 else axes or None)

    def _function(self, function: Any, *args: Any, **options: Any) -> Any:
        """A function of NumPy of this value, with the options that its implementation supports."""
        return call_function(self, function, (self, *args), options)

    def tolist(self) -> Any:
        """Scalar proxies in nested lists."""
        return [row.tolist() for row in self] if self.ndim else self

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return partial(self._function, function_of_numpy(name))
        ufunc = None if name.startswith("_") else getattr(np, name, None)
        if isinstance(ufunc, np.ufunc) and ufunc in UFUNCS and ufunc.nin == 1:
            return partial(ufunc, self)  # NumPy calls these on the entries of arrays of objects
        raise AttributeError(
            f"a traced value has no attribute {name!r}; it is an array of NumPy: use NumPy's functions, or "
            "symad.functions"
        )

    def __repr__(self) -> str:
        return f"<traced value of shape {format_shape(self.shape)}>"

    # ---- elements that are assigned to

    def __setitem__(self, key: Index, value: ArrayLike) -> None:
        """``y[key] = value``; see `symad.tracing.elements.assigning`."""
        write_elements(self, key, value)

    def _current(self) -> Node:
        """The current node; for a slice that of the elements of its array."""
        return self._value

    def _become(self, node: Node, what: str) -> None:
        """Replace the value."""
        self._value = node

    def _is_slice(self, array: Proxy, key: Index) -> bool:
        return False  # True for ``array[key]``; see `symad.tracing.elements.assigning`

    def _in_place(self, operator: str, new: Proxy) -> Proxy:
        """``y += x`` and similar: every name of this value refers to the new one, as in NumPy."""
        if not self.ndim:
            return new  # numbers are immutable
        check_owned(self, f"{operator} of")
        if new.shape != self.shape:
            raise ShapeError(
                f"y {operator} x of a traced y of shape {format_shape(self.shape)}{users_line()}: the result "
                f"has shape {format_shape(new.shape)}; write y = y {operator[:-1]} x"
            )
        self._become(new._node, f"{operator} of")
        return self

    def _viewed(self, node: Node) -> Proxy:
        """A value that may share the memory of this one in NumPy, other than a slice."""
        view = Proxy(node)
        if view.ndim:
            view._views = VIEW
            self._note(view)
        return view

    def _note(self, view: Proxy) -> None:
        """Record a reshaped form, as long as it is in use."""
        known = getattr(self, "_views", None)
        if known is None:
            known = self._views = []
        if known is not VIEW:
            if not len(known) & (len(known) - 1):  # at powers of two: remove dead references
                known[:] = [v for v in known if v() is not None]
            known.append(ref(view))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """An array of scalar proxies, so that ``np.array([x, y])``, ``np.r_`` and the like work."""
        if not is_concrete(self.shape) or self.size > MAX_SCALARS:
            self._no_value(
                "a conversion to a NumPy array",
                "use np.stack or np.concatenate instead of np.array; functions that use NumPy's protocols "
                "(np.linalg, SciPy's ufuncs; symad.functions has softmax, logsumexp and others); and "
                "functions.lookup to read a constant array at traced positions",
            )
        boxed = np.empty(self.shape, dtype=object)
        if not self.ndim:
            boxed[()] = self
        for place in np.ndindex(*boxed.shape) if self.ndim else ():
            boxed[place] = Proxy(element(self._node, *place))
        boxed.flags.writeable = bool(copy)  # np.asarray gives a view in NumPy
        return boxed

    def _sympy_(self) -> Any:
        """A symbol of SymPy that stands for this scalar."""
        if self.ndim:
            self._no_value(
                "a SymPy expression",
                "apply NumPy's functions or those of symad.functions; SymPy's functions take arrays where "
                "the traced function names them: sympy.erf(x) with sympy imported at the top of its file",
            )
        atom = Traced("traced", real=True)
        atom.proxy = self
        return atom

    # ---- operators

    if TYPE_CHECKING:  # set below, from the table of arithmetic

        def __add__(self, other: ArrayLike) -> Proxy: ...
        def __radd__(self, other: ArrayLike) -> Proxy: ...
        def __sub__(self, other: ArrayLike) -> Proxy: ...
        def __rsub__(self, other: ArrayLike) -> Proxy: ...
        def __mul__(self, other: ArrayLike) -> Proxy: ...
        def __rmul__(self, other: ArrayLike) -> Proxy: ...
        def __truediv__(self, other: ArrayLike) -> Proxy: ...
        def __rtruediv__(self, other: ArrayLike) -> Proxy: ...
        def __floordiv__(self, other: ArrayLike) -> Proxy: ...
        def __mod__(self, other: ArrayLike) -> Proxy: ...
        def __pow__(self, other: ArrayLike) -> Proxy: ...
        def __rpow__(self, other: ArrayLike) -> Proxy: ...
        def __lt__(self, other: ArrayLike) -> Proxy: ...
        def __le__(self, other: ArrayLike) -> Proxy: ...
        def __gt__(self, other: ArrayLike) -> Proxy: ...
        def __ge__(self, other: ArrayLike) -> Proxy: ...
        def __and__(self, other: ArrayLike) -> Proxy: ...
        def __or__(self, other: ArrayLike) -> Proxy: ...

    def __neg__(self) -> Proxy:
        return Proxy(neg(number(self)))

    def __pos__(self) -> Proxy:
        return Proxy(self._node)

    def __abs__(self) -> Proxy:
        return Proxy(apply(sympy.Abs, number(self)))

    def __floor__(self) -> Proxy:
        return Proxy(apply(sympy.floor, number(self)))

    def __ceil__(self) -> Proxy:
        return Proxy(apply(sympy.ceiling, number(self)))

    def __invert__(self) -> Proxy:
        return truth("not", self)

    def __divmod__(self, other: ArrayLike) -> Any:
        return elementwise(floor_divide, self, other), elementwise(remainder, self, other)

    def __matmul__(self, other: ArrayLike) -> Proxy:
        return NotImplemented if is_sparse(other) else Proxy(matrix_product(self, other))

    def __rmatmul__(self, other: ArrayLike) -> Proxy:
        return Proxy(matrix_product(other, self))

    def __eq__(self, other: ArrayLike) -> Any:
        return elementwise(partial(compare, "=="), self, other) if convertible(other) else NotImplemented

    def __ne__(self, other: ArrayLike) -> Any:
        return elementwise(partial(compare, "!="), self, other) if convertible(other) else NotImplemented

    # ---- elements

    def __getitem__(self, key: Any) -> Any:
        return read_elements(self, key)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a traced scalar has no length")
        length = self.shape[0]
        if not isinstance(length, int):
            self._no_value(
                f"the length {length}",
                "it is a symbol; use x.shape[0], and sums, functions.scan or functions.fold for loops",
            )
        return length

    def __iter__(self) -> Iterator[Proxy]:
        return (self[k] for k in range(len(self)))

    # ---- NumPy's protocols

    @staticmethod
    def apply_function(head: type[sympy.Basic], args: Sequence[ArrayLike]) -> Proxy:
        """A scalar function of ``args``, some of which are traced; called by SymPy's functions."""
        return elementwise(partial(apply, head), *args)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return call_ufunc(self, ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return call_function(self, function, args, options)


def _operator(make: Callable[..., Node]) -> tuple[Any, Any]:
    """An operator and its reflection, from a maker of nodes."""

    def forward(self: Proxy, other: ArrayLike) -> Any:
        return elementwise(make, self, other) if convertible(other) else NotImplemented

    def backward(self: Proxy, other: ArrayLike) -> Any:
        return elementwise(make, other, self) if convertible(other) else NotImplemented

    return forward, backward


def _logical(kind: str) -> Any:
    """One of ``& | ^`` on conditions."""

    def operator(self: Proxy, other: ArrayLike) -> Proxy:
        return truth(kind, self, other)

    return operator


def _assigning(operator: str, forward: Any) -> Any:
    """An operator such as ``+=``."""

    def in_place(self: Proxy, other: Any) -> Any:
        new = forward(self, other)
        return new if new is NotImplemented else self._in_place(operator, new)

    return in_place


for _name, _make in ARITHMETIC.items():
    _forward, _backward = _operator(_make)
    setattr(Proxy, f"__{_name}__", _forward)
    setattr(Proxy, f"__r{_name}__", _backward)
    setattr(Proxy, f"__i{_name}__", _assigning(SIGNS[_name], _forward))
for _name, _relation in {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Proxy, f"__{_name}__", _operator(partial(compare, _relation))[0])
for _name in ("and", "or", "xor"):
    setattr(Proxy, f"__{_name}__", _logical(_name))
    setattr(Proxy, f"__r{_name}__", _logical(_name))


def truth(kind: str, *values: Any) -> Proxy:
    """``& | ^ ~`` of conditions.

    Raises:
        TraceError: a value is a number; these operators have no meaning on real numbers.
    """
    nodes = [as_node(v) for v in values]
    for node in nodes:
        if not is_condition(node):
            raise TraceError(
                f"the operator {kind!r} (one of & | ^ ~) on a traced number of shape "
                f"{format_shape(node.shape)}; it is for conditions such as x > 0"
            )
    return Proxy(logic(kind, *broadcast(*nodes)))


def elementwise(make: Callable[..., Node], *values: Any) -> Proxy:
    """An elementwise maker applied to values that broadcast together."""
    read = as_node if make in KEEPS_CONDITIONS else number
    return Proxy(make(*broadcast(*map(read, values))))
