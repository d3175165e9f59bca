"""Sums over all pairs of two point sets in traced functions, f(x_i, y_j, θ) as SymPy mathematics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy as sp

from symad.core.arrays import Array
from symad.core.dims import Shape
from symad.core.expressions import Formula
from symad.core.given import real_array
from symad.core.graph import Node
from symad.core.signatures import Traceable
from symad.errors import ShapeError, TraceError
from symad.fused.pair_sum import NUMBER, PairSum, pair_evaluate
from symad.fused.users_call import call_by_name
from symad.ops.basic.shaping import broadcast_to, reshape
from symad.ops.basic.sources import constant
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import number


def pairwise(
    f: Callable[..., Array],
    x: Array,
    y: Array,
    b: Array | None = None,
    *,
    reduce: str = "sum",
    params: Mapping[str, Array | float] | None = None,
    return_lse: bool = False,
) -> Array | tuple[Array, Array]:
    """Reduce k_ij = f(x_i, y_j, θ) over j, weighted by b_j, for every i.

    "sum" gives a_i = Σ_j k_ij b_j; "logsumexp" gives L_i = log Σ_j b_j exp(k_ij) with b_j > 0;
    "softmax" gives a_i = Σ_j b_j exp(k_ij) / Σ_j exp(k_ij). One op; lowered code computes it and its
    cotangents block by block, without the matrix of pairs.

    Args:
        f: f(x, y, **params) -> SymPy expression, called once with D×1 matrices of real symbols, each
            parameter a symbol or a column of them.
        x: points (N, D), D a number.
        y: points (M, D).
        b: (M,) or (M, E); ones if not given. "logsumexp" takes (M,).
        reduce: "sum", "logsumexp" or "softmax".
        params: numbers or vectors by name.
        return_lse: with "softmax", also return L_i = log Σ_j exp(k_ij), (N,).

    Returns:
        (N,) or (N, E), like b.

    Raises:
        ShapeError: the shapes do not fit, or D is not known.
        TraceError: f is not scalar, or uses symbols that are not its arguments.

    Example:
        >>> import numpy as np
        >>> from symad import functions
        >>> x, y = np.array([[0.0], [1.0]]), np.array([[0.0], [2.0]])
        >>> square = lambda x, y: (x - y).dot(x - y)
        >>> functions.pairwise(square, x, y)  # Σ_j |x_i − y_j|²
        array([4., 2.])
    """
    values = {"x": x, "y": y, **({} if b is None else {"b": b}), **(params or {})}
    traced = any(isinstance(v, Proxy) for v in values.values())
    nodes: dict[str, Any] = {
        k: number(v) if traced else np.asarray(real_array("pairwise", k, v), float) for k, v in values.items()
    }
    dimension = nodes["x"].shape[-1] if nodes["x"].shape else None
    if not isinstance(dimension, int):
        raise ShapeError(f"pairwise: x has shape {nodes['x'].shape}; give (N, D) with a known D")
    parameters = _parameters({name: nodes[name].shape for name in params or {}})
    op = PairSum(_formula(f, dimension, parameters), parameters, reduce, 0)
    weights = _weights(nodes, traced)
    args = (nodes["x"], nodes["y"], weights, *(nodes[name] for name, _ in parameters))
    found = _at(op, args)
    if b is None or len(nodes["b"].shape) == 1:
        found = reshape(found, found.shape[:1]) if traced else found[:, 0]
    result = Proxy(found) if traced else found
    if not (return_lse and reduce == "softmax"):
        return result
    lse = _at(PairSum(op.formula, parameters, reduce, 1), args)
    return result, (Proxy(lse) if traced else lse)


def _parameters(sizes: Mapping[str, Shape]) -> tuple[tuple[str, int], ...]:
    """The names of the parameters with their lengths, or `NUMBER`.

    Raises:
        ShapeError: one is neither a number nor a vector of known length.
    """
    for name, shape in sizes.items():
        if len(shape) > 1 or not all(isinstance(d, int) for d in shape):
            raise ShapeError(f"pairwise: parameter {name} has shape {shape}; give numbers or vectors")
    return tuple((name, int(shape[0]) if shape else NUMBER) for name, shape in sizes.items())


def _weights(nodes: Mapping[str, Any], traced: bool) -> Any:
    """The weights b as a matrix (M, E); ones where there are none."""
    column = (nodes["y"].shape[0], 1)
    if "b" not in nodes:
        return broadcast_to(constant(1), column) if traced else np.ones(column)
    if len(nodes["b"].shape) != 1:
        return nodes["b"]
    return reshape(nodes["b"], column) if traced else nodes["b"].reshape(-1, 1)


def _at(op: PairSum, args: tuple[Node, ...]) -> Any:
    return Node.of(op, args) if isinstance(args[0], Node) else pair_evaluate(op, args)


def _formula(f: Traceable, dimension: int, parameters: tuple[tuple[str, int], ...]) -> Formula:
    """The expression of f at symbols: x[0], ..., y[0], ..., numbers by name, vectors as reads."""
    points = [
        sp.ImmutableMatrix([sp.IndexedBase(name, real=True)[k] for k in range(dimension)]) for name in "xy"
    ]
    given: dict[str, sp.Basic] = {}
    for name, size in parameters:
        if name in ("x", "y"):
            raise TraceError(f"pairwise: a parameter is called {name}, like the points")
        base = sp.IndexedBase(name, real=True)
        entries = [base[k] for k in range(max(size, 0))]
        given[name] = sp.Symbol(name, real=True) if size == NUMBER else sp.ImmutableMatrix(entries)
    value = call_by_name("pairwise: f", f, dict(zip("xy", points, strict=True)), given, every=True)
    if isinstance(value, sp.MatrixBase) and value.shape == (1, 1):
        value = value[0, 0]
    value = sp.sympify(value, strict=True) if isinstance(value, (int, float)) else value
    if not isinstance(value, sp.Expr):
        raise TraceError(f"pairwise: f returned {value!r}; return a scalar expression")
    known = {"x", "y", *given}
    unknown = sorted({str(s) for s in value.free_symbols if not isinstance(s, sp.Indexed)} - known)
    if unknown:
        raise TraceError(f"pairwise: f uses {unknown[0]}, which is not an argument of it; pass it in params")
    return Formula(value)
