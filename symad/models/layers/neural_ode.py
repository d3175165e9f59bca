"""Neural ordinary differential equations, and two ways to differentiate their solutions.

    x′ = f(x, t, θ),   x(t_0) = x_0,   wanted: the derivative of L(x(t_1)).

Discretize, then differentiate: the solver's steps are a recurrence, and reverse mode through it gives the
exact gradient of the computed L, in the memory that a policy of `symad.functions.fold` allows.

Differentiate, then discretize (the continuous adjoint): a = ∂L/∂x(t) and g = ∂L/∂θ solve

    a′ = −(∂f/∂x)ᵀ a,   g′ = −(∂f/∂θ)ᵀ a,   a(t_1) = ∂L/∂x(t_1),   g(t_1) = 0,

backwards in time together with x. Nothing is stored, but x(t) is recomputed only up to the solver's
error: the gradient is that of L up to O(h^p), p the order of the method, and it is not the gradient of the
computed L. Shapes: x (d,) or any other, θ arrays. Sources: Chen, Rubanova, Bettencourt & Duvenaud, "Neural
ordinary differential equations" (2018), algorithm 1; Pontryagin et al. (1962); the classical Runge-Kutta
method: Hairer, Nørsett & Wanner, "Solving ordinary differential equations I", table II.1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symad.core.arrays import Array
from symad.core.graph import Graph
from symad.derivatives.sweeps import pullback
from symad.errors import ShapeError
from symad.functions import fold, scan
from symad.tracing import trace
from symad.tracing.proxies.proxy import Proxy

Field = Callable[..., Array]
"""f(x, t, θ...) -> x′ of the shape of x."""


def euler(field: Field, x: Array, t: Array | float, h: Array, *theta: Array) -> Array:
    """One explicit Euler step; order 1."""
    return x + h * field(x, t, *theta)


def heun(field: Field, x: Array, t: Array | float, h: Array, *theta: Array) -> Array:
    """One step of Heun's method; order 2."""
    k1 = field(x, t, *theta)
    k2 = field(x + h * k1, t + h, *theta)
    return x + h / 2 * (k1 + k2)


def rk4(field: Field, x: Array, t: Array | float, h: Array, *theta: Array) -> Array:
    """One step of the classical Runge-Kutta method; order 4."""
    k1 = field(x, t, *theta)
    k2 = field(x + h / 2 * k1, t + h / 2, *theta)
    k3 = field(x + h / 2 * k2, t + h / 2, *theta)
    k4 = field(x + h * k3, t + h, *theta)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


METHODS: dict[str, Callable[..., Array]] = {"euler": euler, "heun": heun, "rk4": rk4}


def integrate(
    field: Field, x: Array, theta: tuple[Array, ...], span: tuple[float, float], steps: int,
    method: str = "rk4", memory: str = "all", history: bool = False,
) -> Array:  # fmt: skip
    """The solution x(t_1) in equal steps, or with ``history`` that at the end of every step (steps, ...).

    Args:
        field: f(x, t, θ...).
        x: x_0, an array or a traced value.
        theta: the arrays θ.
        span: (t_0, t_1); t_1 < t_0 integrates backwards.
        steps: the number of steps, at least one.
        method: "euler", "heun" or "rk4".
        memory: what reverse mode keeps; see `symad.functions.fold`.
        history: true if all states are wanted.

    Raises:
        ShapeError: no steps, or an unknown method.
    """
    if method not in METHODS or steps < 1:
        raise ShapeError(
            f"integrate in {steps} steps by {method!r}: needs at least 1, and one of {', '.join(METHODS)}"
        )
    start, stop = span
    h = (stop - start) / steps
    times = start + h * np.arange(steps)
    run = scan if history else fold
    return run(lambda x, t: METHODS[method](field, x, t, h, *theta), x, times, memory)


def field_graph(field: Field, state: tuple[int, ...], theta: Sequence[tuple[int, ...]]) -> Graph:
    """The field as a graph (x, t, θ...) -> x′, for arrays of these shapes."""

    def f(*values: Array) -> Array:
        return field(*values)

    return trace(f, [state, (), *theta])


def adjoint(
    field: Field, x_end: Array, x_bar: Array, theta: tuple[Array, ...], span: tuple[float, float], steps: int,
    method: str = "rk4",
) -> tuple[Array, ...]:  # fmt: skip
    """The continuous adjoint: (x(t_0), ∂L/∂x(t_0), ∂L/∂θ...) from x(t_1) and ∂L/∂x(t_1).

    Args:
        field: f(x, t, θ...).
        x_end: x(t_1).
        x_bar: ∂L/∂x(t_1).
        theta: the arrays θ.
        span: (t_0, t_1).
        steps: the number of steps of the integration backwards.
        method: see `integrate`.
    """
    shapes = [_shape(v) for v in (x_end, x_bar, *theta)]
    pulled = pullback(field_graph(field, shapes[0], shapes[2:]))

    def backwards(flat: Array, t: Array | float, *theta: Array) -> Array:
        x, a, *_ = _cut(flat, shapes)
        slope, x_rate, _, *rates = pulled(x, t, *theta, a)
        return _flat([slope, -x_rate, *(-rate for rate in rates)])

    end = _flat([x_end, x_bar, *(np.zeros(shape) for shape in shapes[2:])])
    found = integrate(backwards, end, theta, (span[1], span[0]), steps, method)
    return tuple(_cut(found, shapes))


def _shape(value: Array) -> tuple[int, ...]:
    return tuple(value.shape) if isinstance(value, Proxy) else np.shape(value)


def _flat(parts: Sequence[Array]) -> Array:
    """Arrays flattened and concatenated."""
    return np.concatenate([np.reshape(part, (-1,)) for part in parts])


def _cut(flat: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Arrays of these shapes from one axis."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes]).tolist()
    starts = [0, *ends[:-1]]
    return [np.reshape(flat[a:b], shape) for a, b, shape in zip(starts, ends, shapes, strict=True)]
