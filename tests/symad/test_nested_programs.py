"""Random programs of nested derivatives, loops, batches and roots against JAX.

A program is a tree. Functions inside of it close over the values around them, and all parameters are
called x or y, so that most of them have the name of another one in scope.
"""

import random

import numpy as np
import pytest

import symad
from symad import functions
from symad.numeric import lower

jax = pytest.importorskip("jax")
jnp = jax.numpy

POINTS = np.array([0.3, -0.5, 0.8])
"""What loops run over, and the factors of the points of a batch."""


# ---- programs -----------------------------------------------------------------------------------


BINDERS = ("call", "grad", "forward", "jvp", "hvp", "vmap", "fold", "root", "remat")


def program(rng, depth, scope, size=2):
    """A random expression in the values 0, ..., scope − 1.

    ``depth`` bounds how deep functions nest, and ``size`` how deep the arithmetic of each does.
    """
    plain = ["sum", "product", "sin", "tanh"] if size else ["leaf"]
    kind = rng.choice(plain + (2 * list(BINDERS) if depth else []))
    if kind == "leaf":
        return ("value", rng.randrange(scope)) if rng.random() < 0.9 else ("number", rng.uniform(-1, 1))
    if kind in ("sum", "product"):
        return (kind, program(rng, depth, scope, size - 1), program(rng, depth, scope, size - 1))
    if kind in ("sin", "tanh"):
        return (kind, program(rng, depth, scope, size - 1))
    inner = ("product", ("value", scope), program(rng, depth - 1, scope + 1 + (kind == "fold")))
    at, other = (program(rng, 0, scope, 1) for _ in range(2))
    return (kind, rng.choice("xy"), scope, inner, at, other)


def run(lib, tree, values):
    """The value of a program; ``values`` are those in scope."""
    kind, *rest = tree
    if kind == "value":
        return values[rest[0]]
    if kind == "number":
        return rest[0]
    if kind in ("sum", "product"):
        a, b = (run(lib, part, values) for part in rest)
        return a + b if kind == "sum" else a * b
    if kind in ("sin", "tanh"):
        return getattr(lib.np, kind)(run(lib, rest[0], values))
    name, _, inner, at, other = rest
    return getattr(lib, kind)(
        name, lambda *new: run(lib, inner, [*values, *new]), run(lib, at, values), run(lib, other, values)
    )


# ---- what the kinds of functions mean, twice ----------------------------------------------------


def named(name, f, count=1):
    """``f`` with parameters of chosen names."""
    if count == 2:
        return (lambda x, y: f(x, y)) if name == "x" else (lambda y, x: f(y, x))
    return (lambda x: f(x)) if name == "x" else (lambda y: f(y))


class Ours:
    """By symad; every function is a graph of its own."""

    np = np

    @staticmethod
    def graph(name, f):
        return symad.trace(named(name, f), [()])

    @classmethod
    def call(cls, name, f, at, other):
        return cls.graph(name, f)(at)

    @classmethod
    def grad(cls, name, f, at, other):
        return symad.gradient(cls.graph(name, f), name)(at)

    @classmethod
    def forward(cls, name, f, at, other):
        return symad.gradient(cls.graph(name, f), name, mode="forward")(at)

    @classmethod
    def jvp(cls, name, f, at, other):
        return symad.pushforward(cls.graph(name, f))(at, other)[1]

    @classmethod
    def hvp(cls, name, f, at, other):
        return symad.hvp(cls.graph(name, f), name)(at, other)

    @classmethod
    def vmap(cls, name, f, at, other):
        return (symad.vmap(cls.graph(name, f))(at * POINTS) * POINTS).sum()

    @classmethod
    def fold(cls, name, f, at, other):
        return functions.fold(lambda c, v: np.tanh(f(c, v)), at, other * POINTS)

    @classmethod
    def root(cls, name, f, at, other):
        equation = symad.trace(named(name, lambda z: z - 0.25 * np.tanh(f(z)) - at), [()])
        return symad.implicit(equation, name)(0.0)

    @classmethod
    def remat(cls, name, f, at, other):
        return functions.remat(named(name, f))(at)


class Theirs:
    """By JAX; a root by Newton's method, which JAX differentiates step by step."""

    np = jnp

    @staticmethod
    def call(name, f, at, other):
        return f(at)

    @staticmethod
    def grad(name, f, at, other):
        return jax.grad(f)(jnp.asarray(at, float))

    @staticmethod
    def forward(name, f, at, other):
        return jax.jacfwd(f)(jnp.asarray(at, float))

    @staticmethod
    def jvp(name, f, at, other):
        return jax.jvp(f, (jnp.asarray(at, float),), (jnp.asarray(other, float),))[1]

    @staticmethod
    def hvp(name, f, at, other):
        return jax.grad(jax.grad(f))(jnp.asarray(at, float)) * other

    @staticmethod
    def vmap(name, f, at, other):
        return (jax.vmap(f)(at * POINTS) * POINTS).sum()

    @staticmethod
    def fold(name, f, at, other):
        for v in other * POINTS:
            at = jnp.tanh(f(at, v))
        return at

    @staticmethod
    def root(name, f, at, other):
        def residual(z):
            return z - 0.25 * jnp.tanh(f(z)) - at

        z = jnp.asarray(0.0)
        for _ in range(6):
            z = z - residual(z) / jax.grad(residual)(z)
        return z

    @staticmethod
    def remat(name, f, at, other):
        return jax.checkpoint(f)(at)


def agree(seed, depth=3, backends=("numpy",)):
    """Value and slope of a random program of nested functions, by both."""
    rng = random.Random(seed)
    tree = program(rng, depth, 2)
    while not any(kind in str(tree) for kind in BINDERS):
        tree = program(rng, depth, 2)
    graph = symad.trace(lambda x, y: run(Ours, tree, [x, y]) + 0 * x, [(), ()])
    values = symad.value_and_gradient(graph)
    with jax.enable_x64(True):
        wanted = jax.value_and_grad(lambda x, y: run(Theirs, tree, [x, y]) + 0 * x, (0, 1))(0.7, -0.4)
        wanted = [float(w) for w in jax.tree.leaves(wanted)]
    np.testing.assert_allclose(values(0.7, -0.4), wanted, rtol=1e-8, atol=1e-10, err_msg=str(tree))
    for backend in backends:
        np.testing.assert_allclose(lower(values, backend=backend)(0.7, -0.4), wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("seed", range(36))
def test_nested_programs(seed):
    agree(seed, depth=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_more_nested_programs(seed):
    agree(seed, depth=3, backends=("numpy", "c"))
