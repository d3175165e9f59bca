"""Attention in traced functions, with a score function and a mask as SymPy mathematics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import format_shape
from symad.core.elsewhere import told_arguments
from symad.core.expressions import Formula
from symad.core.given import real_array
from symad.core.graph import Node
from symad.errors import ShapeError
from symad.fused.attention import attention_shape, in_part
from symad.fused.attention_definition import evaluated
from symad.fused.attention_ops import Attention
from symad.fused.score_functions import Parameter, call_functions, extract_reads
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Input, Iota
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import number


@told_arguments()
def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    score: Callable[..., Array] | None = None,
    mask: Callable[..., Array] | None = None,
    params: Mapping[str, Array | float] | None = None,
    scale: float | None = None,
    causal: bool = False,
    return_lse: bool = False,
) -> Any:
    """o_i = Σ_j softmax_j(f(scale ⟨q_i, k_j⟩, b, h, i, j, θ)) v_j over the pairs the mask allows.

    One op. Backends have tiled code for it, for its derivatives and for Hessian-vector products; this code
    never forms an array over all pairs.

    Args:
        q: queries (..., N, d), at most two axes before: (batch, heads, N, d), (heads, N, d), (N, d).
        k: keys (..., M, d); there may be fewer heads, a divisor: query head h reads key head
            h // (heads / key heads).
        v: values (..., M, d_v).
        score: f(s, b, h, i, j, **params) -> SymPy expression, called once with symbols. A piece −∞ of it, or
            of one of its terms, hides the pair, as a mask does.
        mask: (b, h, i, j, **params) -> SymPy Boolean, true for pairs that take part.
        params: parameters of the functions by name: numbers, or arrays that they index.
        scale: factor of ⟨q_i, k_j⟩; 1/√d if not given.
        causal: hide the pairs with j > i.
        return_lse: also return L_i = log Σ_j exp(t_ij), (..., N).

    Returns:
        (..., N, d_v), with L if ``return_lse``. Queries without visible keys have output 0 and L = −∞.

    Raises:
        ShapeError: the shapes do not fit.
        TraceError: score or mask use unknown symbols or arrays.

    Example:
        >>> import numpy as np, symad
        >>> def heads(q, k, v):
        ...     return symad.functions.attention(q, k, v)
        >>> heads = symad.trace(heads, [(2, 4)] * 3)
        >>> heads(np.zeros((2, 4)), np.zeros((2, 4)), np.eye(2, 4))
        array([[0.5, 0.5, 0. , 0. ],
               [0.5, 0.5, 0. , 0. ]])
    """
    values = {"q": q, "k": k, "v": v, **(params or {})}
    traced = any(isinstance(x, Proxy) for x in values.values())
    nodes = {name: number(x) if traced else real_array("attention", name, x) for name, x in values.items()}
    parameters = tuple(
        Parameter(name, len(nodes[name].shape), _is_integer(nodes[name])) for name in params or {}
    )
    value, allowed = call_functions(score, mask, parameters, causal)
    extract_reads(value, allowed, parameters)  # raises for unknown symbols and arrays
    rank = _rank(nodes)
    names = tuple((p.name, p.ndim, p.integer) for p in parameters)
    op = Attention(Formula(value), Formula(allowed), names, _plain(scale), 0)
    arrays = [_with_four_axes(nodes[name]) for name in "qkv"]
    args = (*arrays, *(nodes[p.name] for p in parameters))
    _check_shapes(op, args, nodes)
    lead = nodes["q"].shape[: rank - 2]
    found: list[Array] = []
    for part in (0, 1) if return_lse else (0,):
        if traced:
            y = in_part(op, Attention, part, args)
            found.append(Proxy(reshape(y, (*lead, *y.shape[2:]))))
        else:
            made = evaluated(Attention(op.score, op.mask, op.parameters, op.scale, part), args)
            found.append(np.reshape(made, (*lead, *np.shape(made)[2:])))
    return tuple(found) if return_lse else found[0]


def _check_shapes(op: Attention, args: Any, nodes: Mapping[str, Any]) -> None:
    """Refuse arguments that do not fit together; the error has the shapes that the user gave."""
    try:
        attention_shape(op, args)
    except ShapeError as error:
        given = ", ".join(f"{name} {format_shape(nodes[name].shape)}" for name in "qkv")
        raise ShapeError(f"{error} (given: {given})") from None


def _plain(scale: float | None) -> float | None:
    """The number in a type that can be a field of an op."""
    return scale if scale is None or isinstance(scale, int) else float(scale)


def _is_integer(value: Any) -> bool:
    if not isinstance(value, Node):
        return bool(value.dtype.kind in "biu")
    op = value.op
    if isinstance(op, ArrayConstant):
        return np.dtype(op.dtype).kind in "biu"
    if isinstance(op, Constant):
        return isinstance(op.value, int)
    if isinstance(op, Input):
        return bool(getattr(getattr(op.symbol, "label", op.symbol), "is_integer", False))
    return isinstance(op, (Iota, Dimension))


def _rank(nodes: Mapping[str, Any]) -> int:
    shapes = {name: nodes[name].shape for name in "qkv"}
    ranks = {len(s) for s in shapes.values()}
    if len(ranks) > 1 or not ranks <= {2, 3, 4}:
        shown = ", ".join(f"{name} {format_shape(s)}" for name, s in shapes.items())
        raise ShapeError(f"attention: {shown}; give (batch, heads, length, width), alike for all three")
    return ranks.pop()


def _with_four_axes(a: Any) -> Any:
    shape = (*(1,) * (4 - len(a.shape)), *a.shape)
    return reshape(a, shape) if isinstance(a, Node) else a.reshape(shape)
