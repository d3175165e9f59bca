"""Random programs of nested functions, each run by symad and by JAX.

A program is a tree. Inner functions close over the values of outer ones. All parameters are called x or y, so
that most of them have the name of another parameter in scope. Values are numbers or vectors of `LENGTH`;
the derivative of a vector is the derivative of its sum.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import symad
from symad import functions
from symad.errors import LoweringError
from symad.numeric import given, lower

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

POINTS = np.array([0.3, -0.5, 0.8])
"""The values that loops run over, and the factors of the points of batches and the elements of vectors."""

LENGTH = len(POINTS)
AT = (0.7, -0.4)
"""The inputs at which values and derivatives are compared."""

NEWTON = 8
"""Steps of JAX's Newton iteration; programs in which it has not converged after them are left out."""

CLOSE = {"rtol": 1e-8, "atol": 1e-10}

BINDERS = (
    "call", "over", "grad", "forward", "jvp", "vjp", "hvp", "hessian", "jacobian", "partial", "vmap",
    "fold", "scan", "pair", "root", "remat",
)  # fmt: skip
MORE = (*BINDERS, "stopped", "jet", "custom", "affine")
"""All kinds; the last four are drawn only on request, so that the seeds of older programs stay valid."""

TWO = {"fold", "scan", "pair", "partial"}
"""Kinds of functions with two parameters."""

Tree = Any


# ---- programs -----------------------------------------------------------------------------------------


def program(
    rng: random.Random, depth: int, scope: int, size: int = 2, binders: Sequence[str] = BINDERS
) -> Tree:
    """A random expression in the values 0, ..., scope − 1.

    ``depth`` bounds the nesting of functions, and ``size`` the nesting of the arithmetic in each.
    """
    plain = ["sum", "product", "sin", "tanh", "choice"] if size else ["leaf"]
    kind = rng.choice(plain + (2 * list(binders) if depth else []))
    if kind == "leaf":
        return ("value", rng.randrange(scope)) if rng.random() < 0.9 else ("number", rng.uniform(-1, 1))
    if kind in ("sum", "product", "choice"):
        a, b = (program(rng, depth, scope, size - 1, binders) for _ in range(2))
        return (kind, a, b)
    if kind in ("sin", "tanh"):
        return (kind, program(rng, depth, scope, size - 1, binders))
    below = program(rng, depth - 1, scope + 1 + (kind in TWO), binders=binders)
    inner = ("product", ("value", scope), below)
    at, other = (program(rng, 0, scope, 1) for _ in range(2))
    return (kind, rng.choice("xy"), rng.randrange(3), inner, at, other)


def kinds(tree: Tree) -> set[str]:
    """The kinds of all parts of a program."""
    return {tree[0]}.union(*(kinds(part) for part in tree[1:] if isinstance(part, tuple)))


def run(lib: Any, tree: Tree, values: Sequence[Any]) -> Any:
    """The value of a program; ``values`` has the values in scope."""
    kind, *rest = tree
    if kind == "value":
        return values[rest[0]]
    if kind == "number":
        return rest[0]
    if kind in ("sum", "product", "choice"):
        a, b = (run(lib, part, values) for part in rest)
        if kind == "choice":
            return lib.np.where(a > b, a * b, lib.np.sin(b))
        return a + b if kind == "sum" else a * b
    if kind in ("sin", "tanh"):
        return getattr(lib.np, kind)(run(lib, rest[0], values))
    name, way, inner, at, other = rest
    at, other = run(lib, at, values), run(lib, other, values)
    return getattr(lib, kind)(name, way, lambda *new: run(lib, inner, [*values, *new]), at, other)


# ---- what the kinds of functions mean, twice ----------------------------------------------------------


def fitted(np_: Any, value: Any, like: Any) -> Any:
    """A value in the shape of another one, by a sum or by broadcasting."""
    if np.shape(value) == np.shape(like):
        return value
    return np_.sum(value) if np.shape(value) else value + np.zeros(np.shape(like))


class Ours:
    """The kinds of functions in symad; every function is a graph of its own."""

    np = np

    @staticmethod
    def graph(name: str, f: Callable[..., Any], at: Any, total: bool = False, second: Any = None) -> Any:
        """The graph of ``f``, or of its sum, with one or two parameters of chosen names."""
        g: Callable[..., Any] = (lambda *v: np.sum(f(*v))) if total else f
        shapes = [np.shape(at)] if second is None else [np.shape(at), np.shape(second)]
        if second is not None:
            named: Any = (lambda x, y: g(x, y)) if name == "x" else (lambda y, x: g(y, x))
        else:
            named = (lambda x: g(x)) if name == "x" else (lambda y: g(y))
        return symad.trace(named, shapes)

    @classmethod
    def call(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return cls.graph(name, f, at)(at)

    @classmethod
    def over(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        vector = np.sum(at) * POINTS + other
        return cls.graph(name, f, vector, total=True)(vector)

    @classmethod
    def grad(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return symad.gradient(cls.graph(name, f, at, total=True), name)(at)

    @classmethod
    def forward(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return symad.gradient(cls.graph(name, f, at, total=True), name, mode="forward")(at)

    @classmethod
    def jvp(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return symad.pushforward(cls.graph(name, f, at))(at, fitted(np, other, at))[1]

    @classmethod
    def vjp(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        graph = cls.graph(name, f, at)
        return symad.pullback(graph)(at, fitted(np, other, np.zeros(graph.outputs[0].shape)))[1]

    @classmethod
    def hvp(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        mode = ("forward-over-reverse", "reverse-over-forward", "reverse-over-reverse")[way]
        graph = cls.graph(name, f, at, total=True)
        return symad.hvp(graph, name, mode=mode)(at, fitted(np, other, at))

    @classmethod
    def hessian(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        mode = ("forward-over-reverse", "forward-over-forward", "reverse-over-reverse")[way]
        return np.sum(symad.hessian(cls.graph(name, f, at, total=True), name, mode=mode)(at)) * other

    @classmethod
    def jacobian(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        mode = ("auto", "forward", "reverse")[way]
        return np.sum(symad.jacobian(cls.graph(name, f, at), name, mode=mode)(at)) * other

    @classmethod
    def partial(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        second = fitted(np, other, at)
        return symad.gradient(cls.graph(name, f, at, total=True, second=second), name)(at, second)

    @classmethod
    def vmap(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        many = np.stack([at * p for p in POINTS])
        return np.sum(symad.vmap(cls.graph(name, f, at))(many), axis=0) * fitted(np, other, at)

    @classmethod
    def fold(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        memory = ("all", "recompute", "sqrt")[way]
        return functions.fold(
            lambda c, v: np.tanh(fitted(np, f(c, v), at)), at, np.sum(other) * POINTS, memory=memory
        )

    @classmethod
    def scan(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        memory = ("all", "recompute", 2)[way]
        states = functions.scan(
            lambda c, v: np.tanh(fitted(np, f(c, v), at)), at, np.sum(other) * POINTS, memory=memory
        )
        return np.sum(states, axis=0)

    @classmethod
    def pair(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        def step(c: Any, v: Any) -> Any:
            return np.tanh(fitted(np, f(c[0], c[1] * v), at)), np.sin(np.sum(c[0]) + c[1])

        return functions.fold(step, (at, np.sum(other)), POINTS)[0]

    @classmethod
    def root(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        graph = cls.graph(name, lambda z: z - 0.25 * np.tanh(fitted(np, f(z), at)) - at, at)
        return symad.implicit(graph, name)(np.zeros(np.shape(at)))

    @classmethod
    def remat(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return functions.remat((lambda x: f(x)) if name == "x" else (lambda y: f(y)))(at)

    @staticmethod
    def stopped(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return f(at) * symad.stop_gradient(f(other))

    @classmethod
    def jet(cls, name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        order = 1 + way
        return symad.jet(cls.graph(name, f, at), order)(at, fitted(np, other, at))[order]

    @staticmethod
    def custom(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return RULED[way](f(at))

    @staticmethod
    def affine(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        factors = np.tanh(np.sum(f(at))) * POINTS
        return at * np.sum(functions.affine_scan(factors, POINTS + np.sum(other), reverse=way == 1))


class Theirs:
    """The kinds of functions in JAX; roots by Newton's method, which JAX differentiates step by step."""

    np = jnp

    @staticmethod
    def call(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return f(at)

    @staticmethod
    def over(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return jnp.sum(f(jnp.sum(at) * POINTS + other))

    @staticmethod
    def grad(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return jax.grad(lambda v: jnp.sum(f(v)))(jnp.asarray(at, float))

    forward = grad

    @staticmethod
    def jvp(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        at = jnp.asarray(at, float)
        return jax.jvp(f, (at,), (jnp.asarray(fitted(jnp, other, at), float),))[1]

    @staticmethod
    def vjp(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        value, back = jax.vjp(f, jnp.asarray(at, float))
        return back(jnp.asarray(fitted(jnp, other, value), float))[0]

    @staticmethod
    def hvp(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        at = jnp.asarray(at, float)
        slope = jax.grad(lambda v: jnp.sum(f(v)))
        return jax.jvp(slope, (at,), (jnp.asarray(fitted(jnp, other, at), float),))[1]

    @staticmethod
    def hessian(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return jnp.sum(jax.hessian(lambda v: jnp.sum(f(v)))(jnp.asarray(at, float))) * other

    @staticmethod
    def jacobian(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return jnp.sum(jax.jacfwd(f)(jnp.asarray(at, float))) * other

    @staticmethod
    def partial(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        second = fitted(jnp, other, at)
        return jax.grad(lambda v: jnp.sum(f(v, second)))(jnp.asarray(at, float))

    @staticmethod
    def vmap(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        many = jnp.stack([at * p for p in POINTS])
        return jnp.sum(jax.vmap(f)(many), axis=0) * fitted(jnp, other, at)

    @staticmethod
    def fold(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return Theirs._states(f, at, other)[-1]

    @staticmethod
    def scan(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return sum(Theirs._states(f, at, other))

    @staticmethod
    def _states(f: Any, at: Any, other: Any) -> list[Any]:
        states, total = [at], jnp.sum(jnp.asarray(other))
        for v in POINTS:
            states.append(jnp.tanh(fitted(jnp, f(states[-1], total * v), at)))
        return states[1:]

    @staticmethod
    def pair(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        first, second = at, jnp.sum(jnp.asarray(other))
        for v in POINTS:
            first, second = (
                jnp.tanh(fitted(jnp, f(first, second * v), at)),
                jnp.sin(jnp.sum(jnp.asarray(first)) + second),
            )
        return first

    @staticmethod
    def root(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        def residual(z: Any) -> Any:
            return z - 0.25 * jnp.tanh(fitted(jnp, f(z), at)) - at

        z = jnp.zeros(np.shape(at))
        for _ in range(NEWTON):
            slope, left = jax.jacfwd(residual)(z), residual(z)
            z = z - (jnp.linalg.solve(slope, left) if np.shape(at) else left / slope)
        found = jnp.max(jnp.abs(residual(z))) < 1e-13
        return jnp.where(found, z, jnp.nan)

    @staticmethod
    def remat(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return jax.checkpoint(f)(at)

    @staticmethod
    def stopped(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return f(at) * jax.lax.stop_gradient(f(other))

    @staticmethod
    def jet(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        at = jnp.asarray(at, float)
        along = jnp.asarray(fitted(jnp, other, at), float)

        def line(t: Any) -> Any:
            return f(at + t * along)

        for _ in range(1 + way):
            line = jax.jacfwd(line)
        return line(0.0)

    @staticmethod
    def custom(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        return _ruled(way, jnp.asarray(f(at), float))

    @staticmethod
    def affine(name: str, way: int, f: Any, at: Any, other: Any) -> Any:
        factors, state, total = jnp.tanh(jnp.sum(jnp.asarray(f(at)))) * POINTS, 0.0, 0.0
        order = range(LENGTH - 1, -1, -1) if way == 1 else range(LENGTH)
        for k in order:
            state = factors[k] * state + POINTS[k] + jnp.sum(jnp.asarray(other))
            total = total + state
        return at * total


SLOPES = (lambda np_, u: np_.cos(u), lambda np_, u: 0.3 * u * u, lambda np_, u: np_.tanh(u) * np_.cos(u))
"""Derivatives that users give for functions with the values of sine; these, not cosine, must be used."""

RULED = [
    symad.register_function(f"ruled_{k}", np.sin, [lambda u, rule=rule: rule(np, u)])
    for k, rule in enumerate(SLOPES)
]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _ruled(way: int, u: Any) -> Any:
    return jnp.sin(u)


@_ruled.defjvp
def _ruled_jvp(way: int, primals: Any, tangents: Any) -> Any:
    return _ruled(way, *primals), SLOPES[way](jnp, *primals) * tangents[0]


# ---- one program --------------------------------------------------------------------------------------


def drawn(seed: int, depth: int, binders: Sequence[str] = BINDERS) -> Tree:
    """A random program that contains a function."""
    rng = random.Random(seed)
    tree = program(rng, depth, 2, binders=binders)
    while not kinds(tree) & set(binders):
        tree = program(rng, depth, 2, binders=binders)
    return tree


def by_jax(tree: Tree) -> list[float]:
    """The value and the derivatives."""
    with jax.enable_x64(True):
        made = jax.value_and_grad(lambda x, y: jnp.sum(run(Theirs, tree, [x, y]) + 0 * x), (0, 1))(*AT)
        return [float(w) for w in jax.tree.leaves(made)]


def judge(
    seed: int, depth: int = 3, backends: Sequence[str] = ("numpy",), binders: Sequence[str] = BINDERS
) -> bool:
    """Compares a random program's value and derivatives by JAX, graph and kernels; True if it has a value.

    Backend "given" is NumPy code with a fixed x. Backend "runs" may refuse a program by a named error, as it
    takes graphs of scalars.

    Raises:
        AssertionError: they differ.
    """
    tree = drawn(seed, depth, binders)
    wanted = by_jax(tree)
    if not np.isfinite(wanted).all():
        return False
    graph = symad.trace(lambda x, y: np.sum(run(Ours, tree, [x, y]) + 0 * x), [(), ()])
    values = symad.value_and_gradient(graph)
    np.testing.assert_allclose(values(*AT), wanted, **CLOSE, err_msg=f"graph: {tree}")
    for backend in backends:
        try:
            kernel = lower(values, backend=backend) if backend != "given" else _given(values)
        except LoweringError as error:
            if backend == "runs" and "takes graphs of scalars" in str(error):
                continue
            raise
        np.testing.assert_allclose(kernel(*AT), wanted, **CLOSE, err_msg=f"{backend}: {tree}")
    return True


def _given(values: symad.Graph) -> Callable[..., Any]:
    """The code with a fixed x, called like the code with both arguments."""
    fast = given(values, {"x": AT[0]})
    return lambda x, y: fast(y)
