"""Functions that only NumPy and SciPy have: called on the host, with SymPy's derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module

import jax
import jax.numpy as jnp
import sympy

from symad.derivatives.jacobian import gradient
from symad.numeric.targets.target import NUMPY

HEADS = {head.__name__: head for head in NUMPY.functions}
"""SymPy's functions by name."""


@cache
def host_function(name: str, count: int) -> Callable[..., jax.Array]:
    """The elementwise function of a SymPy head with ``count`` arguments, which JAX can differentiate."""
    head = HEADS[name]
    found = NUMPY.functions[head]
    compute: Callable[..., jax.Array] = getattr(import_module(found.module), found.name)

    def values(*args: jax.Array) -> jax.Array:
        arrays = jnp.broadcast_arrays(*(jnp.asarray(a) for a in args))
        dtype = jnp.result_type(*arrays, jnp.float32)
        shape = jax.ShapeDtypeStruct(arrays[0].shape, dtype)
        call = jax.pure_callback(
            lambda *values: compute(*values).astype(dtype), shape, *arrays, vmap_method="broadcast_all"
        )
        return call

    function = jax.custom_jvp(values)

    def rule(args: Sequence[jax.Array], tangents: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
        value = function(*args)
        total = jnp.zeros_like(value)
        for k, tangent in enumerate(tangents):
            if not isinstance(tangent, jax.custom_derivatives.SymbolicZero):
                total = total + slope(name, count, k)(*args) * tangent
        return value, total

    function.defjvp(rule, symbolic_zeros=True)
    made: Callable[..., jax.Array] = function
    return made


@cache
def slope(name: str, count: int, k: int) -> Callable[..., jax.Array]:
    """The derivative by argument k, as a JAX function."""
    from symad.jax.calling import JaxFunction

    symbols = [sympy.Dummy(f"x{j}", real=True) for j in range(count)]
    return JaxFunction(gradient(HEADS[name](*symbols), symbols[k], inputs=symbols))
