"""The bridge to JAX, imported on use: graphs as JAX functions with symad's derivatives.

`as_function` prints a graph as code of ``jax.numpy``, with loops by ``lax.scan``, and gives it the
derivatives that symad derived: ``jit``, ``vmap``, ``grad``, ``hessian`` and pytrees work as with JAX's own.
"""

try:
    import jax as _jax  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "symad.jax is the bridge to JAX, which is not installed here: pip install jax"
    ) from error

from symad.jax.calling import JaxFunction, as_function

__all__ = ["JaxFunction", "as_function"]
