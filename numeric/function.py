"""`symad.function`: a function with its derivatives, code and certificates as methods."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any

from symad.core.arguments import SignatureOf
from symad.core.arrays import ArrayLike
from symad.core.graph import Graph
from symad.core.signatures import Inputs, Wrt
from symad.derivatives import hessian, jacobian
from symad.derivatives.sweeps import pullback, pushforward, value_and_gradient
from symad.numeric.kernel import Kernel
from symad.numeric.lowering import lower
from symad.tracing import trace

if TYPE_CHECKING:
    from symad.core.documents import Explained
    from symad.verification import Certificate


def function(f: Any = None, *, inputs: Inputs | None = None) -> Any:
    """A `Function` of ``f``; as a decorator, ``@symad.function(inputs=[...])``.

    Args:
        f: any form that `symad.trace` takes: a Python function of arrays, a SymPy object, a graph.
        inputs: symbols, shapes or examples of the arguments, as in `symad.trace`.

    Returns:
        A `Function`, which is called as ``f`` is and has ``graph``, ``gradient``, ``hessian``, ``lower``
        and ``check``.

    Raises:
        TraceError: ``f`` cannot be traced.

    Example:
        >>> import numpy as np, symad
        >>> @symad.function(inputs=[(3,)])
        ... def energy(u):
        ...     return np.sum(u**2) / 2
        >>> energy.gradient()(np.array([1.0, 2.0, 3.0]))
        array([1., 2., 3.])
    """
    if f is None:
        return lambda given: function(given, inputs=inputs)
    return Function(trace(f, inputs), f)


class Function:
    """A graph, called like the function it was traced from; its derivatives are further `Function` objects.

    It takes the values that graphs take (floats, arrays, Fractions, SymPy expressions), by position or by
    name. When a function that is being traced calls it, its graph becomes part of that function's graph.
    It is accepted wherever ``f`` is.
    """

    __signature__ = SignatureOf()

    def __init__(self, graph: Graph, f: Any = None) -> None:
        """The name and the docstring are those of ``f``."""
        self.graph = graph
        self.arguments = graph.arguments
        self.__name__ = graph.name
        if callable(f) and hasattr(f, "__name__"):
            update_wrapper(self, f, updated=())
            vars(self).pop("__wrapped__", None)

    def __call__(self, *values: ArrayLike, **named: Any) -> Any:
        """The value."""
        return self.graph(*values, **named)

    # ---- derivatives ------------------------------------------------------------------------------

    def gradient(self, wrt: Wrt | None = None, mode: str = "reverse") -> Function:
        """As `symad.gradient`."""
        return Function(jacobian.gradient(self.graph, wrt, mode))

    def value_and_gradient(self, wrt: Wrt | None = None) -> Function:
        """As `symad.value_and_gradient`."""
        return Function(value_and_gradient(self.graph, wrt))

    def jacobian(self, wrt: Wrt | None = None, **options: Any) -> Function:
        """As `symad.jacobian`, with its options."""
        return Function(jacobian.jacobian(self.graph, wrt, **options))

    def hessian(self, wrt: Wrt | None = None, **options: Any) -> Function:
        """As `symad.hessian`, with its options."""
        return Function(hessian.hessian(self.graph, wrt, **options))

    def hvp(self, wrt: Wrt | None = None, **options: Any) -> Function:
        """As `symad.hvp`, with its options."""
        return Function(hessian.hvp(self.graph, wrt, **options))

    def pushforward(self, wrt: Wrt | None = None) -> Function:
        """As `symad.pushforward`."""
        return Function(pushforward(self.graph, wrt))

    def pullback(self, wrt: Wrt | None = None) -> Function:
        """As `symad.pullback`."""
        return Function(pullback(self.graph, wrt))

    # ---- code, certificates, tables ---------------------------------------------------------------

    def lower(self, backend: str = "numpy", dtype: Any = "float64", **options: Any) -> Kernel:
        """As `symad.numeric.lower`: fast code."""
        return lower(self.graph, backend, dtype, **options)

    @property
    def source(self) -> str:
        """NumPy code to read, one line for each mathematical step."""
        return self.lower(style="plain").source

    def check(self, wrt: Wrt | None = None, **options: Any) -> Certificate:
        """As `symad.check`: a certificate of the derivatives."""
        from symad.verification import check

        return check(self.graph, wrt, **options)

    def verify(self, wrt: Wrt | None = None, **candidate: Any) -> Certificate:
        """As `symad.verify`: a certificate of somebody's derivative."""
        from symad.verification import verify

        return verify(self.graph, wrt, **candidate)

    def explain(self, /, **point: Any) -> Explained:
        """As `Graph.explain`: tables of every step."""
        return self.graph.explain(**point)

    def draw(self, path: Any = None) -> Any:
        """As `Graph.draw`: a picture."""
        return self.graph.draw(path)

    def __repr__(self) -> str:
        return f"<Function{repr(self.graph).removeprefix('<Graph')}"
