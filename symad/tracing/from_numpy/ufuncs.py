"""NumPy's and SciPy's ufuncs on proxies: each is a SymPy function or a short formula on nodes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.dims import format_shape
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.facts.functions import float_names
from symad.ops.arrays import softmax
from symad.ops.arrays.gathering import ScatterAdd, gather
from symad.ops.basic.arithmetic import div, mul, neg, sub
from symad.ops.basic.contraction import contract
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import array_constant, constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.ops.elementwise.selection import compare, logic, select
from symad.tracing.elements.assigning import add_to_elements
from symad.tracing.elements.chosen import Chosen
from symad.tracing.elements.filled import holds_traced, written
from symad.tracing.from_numpy.functions.reductions import running
from symad.tracing.from_numpy.functions.shapes import moveaxis
from symad.tracing.from_numpy.options import cannot_matter, refuse
from symad.tracing.from_numpy.registry import along, normal_axes
from symad.tracing.from_numpy.scipy_ufuncs import SCIPY, cbrt, square
from symad.tracing.proxies.arithmetic import floor_divide, plus, remainder, times
from symad.tracing.proxies.array_protocol import FUNCTIONS, UFUNCS, call_ufunc, function_of_numpy
from symad.tracing.proxies.proxy import Proxy, elementwise, truth
from symad.tracing.proxies.wrapped import as_node, broadcast, condition, matrix_product, number
from symad.tracing.users_line import users_line

if TYPE_CHECKING:
    from symad.core.arrays import ArrayLike

TWO = constant(2)
HALF = constant(Fraction(1, 2))


# ---- formulas -----------------------------------------------------------------------------------


def sqrt(a: Node) -> Node:
    """The square root."""
    return power(a, HALF)


def reciprocal(a: Node) -> Node:
    """1/a."""
    return div(constant(1), a)


def trunc(a: Node) -> Node:
    """A rounded towards 0."""
    return mul(apply(sympy.sign, a), apply(sympy.floor, apply(sympy.Abs, a)))


def fmod(a: Node, b: Node) -> Node:
    """The remainder with the sign of a."""
    return sub(a, mul(b, trunc(div(a, b))))


def copysign(a: Node, b: Node) -> Node:
    """|a| with the sign of b; −0 counts as positive."""
    size = apply(sympy.Abs, a)
    return select(compare("<", b, constant(0)), neg(size), size)


def logaddexp2(a: Node, b: Node) -> Node:
    """log2(2^a + 2^b)."""
    two = apply(sympy.log, TWO)
    return div(apply(logaddexp, mul(a, two), mul(b, two)), two)


def scaled(factor: tuple[sympy.Expr, sympy.Expr], a: Node) -> Node:
    """A constant multiple; the factor is a SymPy number."""
    numerator, denominator = factor
    return div(mul(a, constant(numerator)), constant(denominator))


def elementwise_sum(a: Node, b: Node) -> Proxy:
    """Σ a b along the last axis."""
    left, right = broadcast(a, b)
    labels = range(len(left.shape))
    return Proxy(contract([labels, labels], labels[:-1], left, right))


# ---- tables -------------------------------------------------------------------------------------


def _inverted(prefix: str) -> dict[str, sympy.FunctionClass]:
    """Function names under a module, and their SymPy heads, from the table of the evaluator."""
    return {name[len(prefix) :]: head for head, name in float_names().items() if name.startswith(prefix)}


FORMULAS: dict[str, Callable[..., Node]] = {
    "add": plus,
    "subtract": sub,
    "multiply": times,
    "divide": div,
    "negative": neg,
    "positive": lambda a: a,
    "conjugate": lambda a: a,
    "power": power,
    "float_power": power,
    "square": square,
    "sqrt": sqrt,
    "cbrt": cbrt,
    "reciprocal": reciprocal,
    "fabs": partial(apply, sympy.Abs),
    "trunc": trunc,
    "floor_divide": floor_divide,
    "remainder": remainder,
    "fmod": fmod,
    "logaddexp2": logaddexp2,
    "degrees": partial(scaled, (180, sympy.pi)),
    "rad2deg": partial(scaled, (180, sympy.pi)),
    "radians": partial(scaled, (sympy.pi, 180)),
    "deg2rad": partial(scaled, (sympy.pi, 180)),
    "maximum": partial(apply, sympy.Max),
    "minimum": partial(apply, sympy.Min),
    "fmax": partial(apply, sympy.Max),
    "fmin": partial(apply, sympy.Min),
    "greater": partial(compare, ">"),
    "greater_equal": partial(compare, ">="),
    "less": partial(compare, "<"),
    "less_equal": partial(compare, "<="),
    "equal": partial(compare, "=="),
    "not_equal": partial(compare, "!="),
    "copysign": copysign,
    "signbit": lambda a: compare("<", a, constant(0)),
    "isnan": lambda a: compare("!=", a, a),
}
"""NumPy's ufuncs that are not one SymPy function, by name."""

LOGICAL = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor", "logical_not": "not"}
BITWISE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "invert": "not"}
RUNNING = {"maximum": sympy.Max, "minimum": sympy.Min, "logaddexp": logaddexp}
REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}


def _fill() -> None:
    for name, head in _inverted("numpy.").items():
        UFUNCS[getattr(np, name)] = partial(apply, head)
    for name, formula in FORMULAS.items():
        if hasattr(np, name):
            UFUNCS[getattr(np, name)] = formula


_fill()


def find_ufunc(ufunc: np.ufunc) -> Callable[..., Node] | None:
    """The function that makes the node of a ufunc; those of SciPy are looked up on first use."""
    found = UFUNCS.get(ufunc)
    if found is None and "scipy.special" in sys.modules:
        special = importlib.import_module("scipy.special._ufuncs")
        if ufunc is getattr(special, ufunc.__name__, None):
            for name, head in _inverted("scipy.special.").items():
                UFUNCS.setdefault(getattr(special, name, None), partial(apply, head))
            for name, formula in SCIPY.items():
                UFUNCS.setdefault(getattr(special, name, None), formula)
            found = UFUNCS.get(ufunc)
    return found


@call_ufunc.register(Proxy)
def call_ufunc_traced(
    array: ArrayLike, ufunc: np.ufunc, method: str, inputs: tuple[ArrayLike, ...], options: dict[str, Any]
) -> Any:
    """A ufunc, or one of its methods, on values that include a proxy.

    Raises:
        TraceError: the ufunc has no SymPy function; it writes into an array; or an option or a method is not
            supported.
    """
    name = ufunc.__name__
    out = options.pop("out", None) or ()
    if any(target is not None for target in out):
        return written(getattr(ufunc, method)(*inputs, **options), out)
    if any(isinstance(v, Chosen) for v in inputs):
        return NotImplemented
    answer = METHODS.get(method)
    reads = _reads(name, method)
    if answer is None or reads is None:
        raise TraceError(
            f"np.{name}.{method}{users_line()} is not supported on traced values; use np.where, np.add.at, a "
            "reduction or a contraction"
        )
    given = {k: v for k, v in options.items() if v is not np._NoValue and (k in reads or not _stored(k, v))}
    for option in [k for k in given if k not in reads]:
        refuse(f"np.{name}" if method == "__call__" else f"np.{name}.{method}", option, given[option])
    return answer(ufunc, name, inputs, given)


def _stored(name: str, value: ArrayLike) -> bool:
    """True if an option of a ufunc does not change the numbers."""
    return cannot_matter(name, value, True if name in ("where", "subok") else None, layout=True)


def _reads(name: str, method: str) -> tuple[str, ...] | None:
    """The supported options of a ufunc; None for an unsupported method."""
    if method == "reduce":
        if name == "logaddexp":
            return ("axis", "keepdims")
        known = REDUCTIONS.get(name)
        return None if known is None else tuple(signature(FUNCTIONS[function_of_numpy(known)]).parameters)[1:]
    if method == "accumulate":
        return ("axis",) if name in ("add", "multiply", *RUNNING) else None
    if method == "reduceat":
        return ("axis",) if name in REDUCTIONS or name == "logaddexp" else None
    if method == "at":
        return () if name in SIGNS else None
    return ("axis", "keepdims") if name == "vecdot" else ()


def _reduce(ufunc: np.ufunc, name: str, inputs: tuple[ArrayLike, ...], options: dict[str, Any]) -> Proxy:
    options.setdefault("axis", 0)
    if name != "logaddexp":
        return FUNCTIONS[function_of_numpy(REDUCTIONS[name])](inputs[0], **options)
    node = number(inputs[0])
    axes = normal_axes(options["axis"], len(node.shape))
    kept = [1 if k in axes else d for k, d in enumerate(node.shape)]
    y = softmax.logsumexp(node, axes)
    return Proxy(reshape(y, kept) if options.get("keepdims") else y)


def _accumulate(ufunc: np.ufunc, name: str, inputs: tuple[ArrayLike, ...], options: dict[str, Any]) -> Proxy:
    axis = options.get("axis", 0)
    if name in RUNNING:
        return running(RUNNING[name], inputs[0], axis)
    return FUNCTIONS[function_of_numpy("cumsum" if name == "add" else "cumprod")](inputs[0], axis=axis)


def _outer(
    ufunc: np.ufunc, name: str, inputs: tuple[ArrayLike, ...], options: dict[str, Any]
) -> Proxy | tuple[Proxy, ...]:
    a, b = map(as_node, inputs)
    return _call(ufunc, name, (Proxy(a)[(..., *(None,) * len(b.shape))], Proxy(b)), options)


def _call(
    ufunc: np.ufunc, name: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Proxy | tuple[Proxy, ...]:
    if name in LOGICAL:
        return Proxy(logic(LOGICAL[name], *broadcast(*map(condition, inputs))))
    if name in BITWISE:
        return truth(BITWISE[name], *inputs)
    if name == "matmul":
        return Proxy(matrix_product(*inputs))
    if name in ("matvec", "vecmat"):
        return _with_vector(name, *inputs)
    if name == "vecdot":
        return _vecdot(*inputs, **options)
    if name == "modf":
        whole = elementwise(trunc, *inputs)
        return inputs[0] - whole, whole
    if name == "divmod":
        return elementwise(floor_divide, *inputs), elementwise(remainder, *inputs)
    make = find_ufunc(ufunc)
    if make is None:
        raise TraceError(
            f"the function {name} is not supported on traced values; write it with other functions, or "
            "register it with symad.register_function"
        )
    return elementwise(make, *inputs)


def _vecdot(a: ArrayLike, b: ArrayLike, axis: int = -1, keepdims: bool = False) -> Any:
    """Σ a b along an axis of both; the axis is counted before they broadcast together."""
    x, y = (moveaxis(Proxy(number(v)), axis, -1) for v in (a, b))
    found: Any = elementwise_sum(number(x), number(y))
    return np.expand_dims(found, axis) if keepdims else found


def _with_vector(name: str, a: ArrayLike, b: ArrayLike) -> Proxy:
    """Matrices times vectors, or vectors times matrices, on the last axes."""
    left, right = Proxy(number(a)), Proxy(number(b))
    if name == "matvec":
        return (left @ right[..., None])[..., 0]
    return (left[..., None, :] @ right)[..., 0, :]


SIGNS = {"add": 1, "subtract": -1}
"""The ufuncs whose method ``at`` is traced, and the sign with which they add."""


def _at(ufunc: np.ufunc, name: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
    target, places, value = inputs
    if not isinstance(target, Proxy):
        written(np.zeros(()), (target,))
    add_to_elements(target, places, value, SIGNS[name])


def _reduceat(ufunc: np.ufunc, name: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Proxy:
    """y_k from the elements at i_k, i_k + 1, ... before i_(k+1), or that at i_k alone if i_(k+1) <= i_k.

    All sums are one gather and one scatter; other functions are reduced segment by segment.
    """
    y, k = along(inputs[0], options.get("axis", 0))
    length = y.shape[k]
    if holds_traced(inputs[1]) or not isinstance(length, int):
        raise TraceError(
            f"np.{name}.reduceat{users_line()} of a traced value of shape {format_shape(y.shape)}: the first "
            "places of the segments and the length of the axis must be known numbers"
        )
    first = np.asarray(inputs[1])
    if first.ndim != 1 or first.dtype.kind not in "iu" or np.any((first < 0) | (first >= length)):
        raise ShapeError(f"np.{name}.reduceat: {inputs[1]!r} are not places in 0..{length - 1}")
    ends = np.maximum(np.append(first[1:], length), first + 1)
    rows = moveaxis(Proxy(y), k, 0)
    sums: Any
    if name == "add":
        places = np.concatenate([np.arange(a, b) for a, b in zip(first, ends, strict=True)])
        segments = np.repeat(np.arange(len(first)), ends - first)
        terms = gather(number(rows), array_constant(places))
        sums = Proxy(Node.of(ScatterAdd(len(first)), (array_constant(segments), terms)))
    else:
        parts = [rows[int(a) : int(b)] for a, b in zip(first, ends, strict=True)]
        sums = np.stack([_reduce(ufunc, name, (part,), {}) for part in parts])
    return moveaxis(sums, 0, k)


METHODS = {
    "__call__": _call, "reduce": _reduce, "accumulate": _accumulate, "outer": _outer, "at": _at,
    "reduceat": _reduceat,
}  # fmt: skip
