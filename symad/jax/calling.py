"""`as_function`: a graph, or an argument of `symad.trace`, as a JAX function with symad's derivatives.

Functions that only NumPy and SciPy have are called on the host, with SymPy's derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache, reduce
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sympy

from symad.core.arguments import SignatureOf, bind, flat_values
from symad.core.graph import Graph, TupleOf, pack
from symad.core.identifiers import not_one_of
from symad.core.signatures import Inputs, Traceable, Tree
from symad.derivatives.implicit import Root
from symad.derivatives.jacobian import gradient
from symad.derivatives.sweeps import pullback, pushforward
from symad.errors import EvaluationError, SymadError
from symad.jax.target import JAX, JaxWriter
from symad.numeric.kernel import Kernel, compile_source
from symad.numeric.passes.algebra.definitions import write_definitions
from symad.numeric.plain import plain_program
from symad.numeric.targets.module import print_module
from symad.numeric.targets.target import NUMPY
from symad.ops.linalg.solve_det import MatrixOp
from symad.ops.sparse.sparse_solve import SparseSolve
from symad.tracing import trace

RULES = ("jvp", "vjp")


def as_function(f: Traceable, inputs: Inputs | None = None, rule: str = "jvp") -> JaxFunction:
    """``f`` as a JAX function, with the derivatives that symad derived.

    Args:
        f: an argument of `symad.trace`: a graph, a SymPy object, or a Python function with ``inputs``.
        inputs: order and grouping of the arguments, as in `symad.trace`; a dict of arrays is one argument.
        rule: "jvp": a `jax.custom_jvp` by symad's pushforward; every transformation of JAX works, and reverse
            mode transposes the pushforward. "vjp": a `jax.custom_vjp` by symad's pullback; reverse mode any
            number of times, and no forward mode.

    Returns:
        A `JaxFunction`, for ``jax.grad``, ``jax.jit`` and ``jax.vmap``.

    Raises:
        TraceError: ``f`` cannot be traced.
        SymadError: there is no such rule.
        EvaluationError: when called with another number of arguments, or with numbers that are not real.
        LoweringError: when called, an op has no form in JAX.

    Example:
        >>> import jax, sympy, symad.jax
        >>> x, y = sympy.symbols("x y", real=True)
        >>> f = symad.jax.as_function(x**2 * y)
        >>> float(jax.grad(f)(3.0, 2.0))
        12.0
    """
    if rule not in RULES:
        raise SymadError(not_one_of("as_function: rule", rule, RULES))
    return JaxFunction(trace(f, inputs), rule)


class JaxFunction:
    """A graph as a function of JAX arrays; results have the structure of the graph's.

    If all inputs of the graph are scalars, they may be arrays of points, which broadcast together. An index
    out of range gives NaN.
    """

    __signature__ = SignatureOf()

    def __init__(self, graph: Graph, rule: str = "jvp") -> None:
        """Code is printed on the first call, for each dtype."""
        self.graph = graph
        self.arguments = graph.arguments
        self.__name__ = graph.name
        self.code = Code(graph, rule)

    def __call__(self, *values: Tree, **named: Tree) -> Any:
        """The outputs at these arrays, by position or by name."""
        given = bind(self.graph.name, self.arguments, values, named)
        arrays = [jnp.asarray(v) for v in flat_values(self.arguments, given)]
        for name, array in zip(self.graph.inputs, arrays, strict=True):
            if not jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.kind not in "iub":
                raise EvaluationError(f"{name} was given an array of {array.dtype}; give real numbers")
        if not any(node.shape for node in self.graph.input_nodes) and any(a.ndim for a in arrays):
            arrays = list(jnp.broadcast_arrays(*arrays))
        return pack(self.graph.structure, self.code(*arrays))

    def source(self, dtype: str = "float32") -> str:
        """The code for JAX."""
        return self.code.kernel(dtype).source

    def __reduce__(self) -> tuple[type[JaxFunction], tuple[Graph, str]]:
        return JaxFunction, (self.graph, self.code.rule)

    def __repr__(self) -> str:
        names = ", ".join(argument.name for argument in self.arguments)
        return f"<JaxFunction {self.graph.name}({names})>"


class Code:
    """A graph of flat inputs and outputs as code for JAX, with the codes of its derivatives."""

    def __init__(self, graph: Graph, rule: str) -> None:
        """``rule`` is also the rule of its derivatives."""
        count = len(graph.output_nodes)
        self.graph = graph.ungrouped().with_outputs(graph.output_nodes, TupleOf((None,) * count), graph.name)
        self.rule = rule
        self.kernel = lru_cache(maxsize=8)(self._kernel)
        self.pushforward = lru_cache(maxsize=32)(self._pushforward)
        self.pullback = lru_cache(maxsize=32)(self._pullback)

    def __call__(self, *arrays: jax.Array) -> tuple[jax.Array, ...]:
        """The outputs."""
        return tuple(self.function(*arrays))

    @cached_property
    def function(self) -> Callable[..., jax.Array]:
        """The function that JAX transforms."""
        if self.rule == "jvp":
            made = jax.custom_jvp(self.values)
            made.defjvp(self.jvp)
            return made
        made = jax.custom_vjp(self.values)
        made.defvjp(lambda *arrays: (self(*arrays), arrays), self.vjp)
        return made

    @cached_property
    def factors_matrices(self) -> bool:
        """True if an op solves equations or factors a matrix, which JAX does in single precision at least."""
        return any(isinstance(node.op, (MatrixOp, Root, SparseSolve)) for node in self.graph.nodes)

    def values(self, *arrays: jax.Array) -> tuple[jax.Array, ...]:
        """The results of the printed code."""
        floats = [a.dtype for a in arrays if jnp.issubdtype(a.dtype, jnp.floating)]
        dtype = reduce(jnp.promote_types, floats) if floats else jnp.zeros(()).dtype
        if jnp.dtype(dtype).itemsize > 2 or not self.factors_matrices:
            return tuple(self.kernel(jnp.dtype(dtype).name).function(*arrays))
        wide = [a.astype(jnp.float32) if a.dtype in floats else a for a in arrays]
        return tuple(y.astype(dtype) for y in self.kernel("float32").function(*wide))

    def jvp(
        self, arrays: Sequence[jax.Array], tangents: Sequence[jax.Array]
    ) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
        """(y, ẏ); integers have no tangents."""
        wrt = self.floating(arrays)
        given = [tangents[k] for k in wrt]
        return self(*arrays), self.pushforward(wrt)(*arrays, *given)

    def vjp(self, arrays: Sequence[jax.Array], bars: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        """x̄ of every input; integers have none."""
        wrt = self.floating(arrays)
        found = iter(self.pullback(wrt)(*arrays, *bars))
        nothing = jax.dtypes.float0
        return tuple(
            next(found) if k in wrt else np.zeros(array.shape, nothing) for k, array in enumerate(arrays)
        )

    def floating(self, arrays: Sequence[jax.Array]) -> tuple[int, ...]:
        """The positions of the arrays with derivatives."""
        return tuple(k for k, a in enumerate(arrays) if jnp.issubdtype(a.dtype, jnp.floating))

    def _kernel(self, dtype: str) -> Kernel:
        program = plain_program(write_definitions(self.graph))
        return compile_source(*print_module(program, dtype, JAX, JaxWriter))

    def _pushforward(self, wrt: tuple[int, ...]) -> Code:
        return self._without_values(pushforward(self.graph, list(wrt)))

    def _pullback(self, wrt: tuple[int, ...]) -> Code:
        return self._without_values(pullback(self.graph, list(wrt)))

    def _without_values(self, full: Graph) -> Code:
        made = full.output_nodes[len(self.graph.output_nodes) :]
        return Code(full.with_outputs(made, TupleOf((None,) * len(made)), full.name), self.rule)


# ---- functions that only NumPy and SciPy have ----------------------------------------------------


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
    symbols = [sympy.Dummy(f"x{j}", real=True) for j in range(count)]
    return JaxFunction(gradient(HEADS[name](*symbols), symbols[k], inputs=symbols))
