"""symad: SymPy in, proved derivatives and fast NumPy or CuPy code out."""

from __future__ import annotations

from symad import errors
from symad.batching import vmap
from symad.cost import flops, live_memory, memory
from symad.dual import Dual
from symad.forward import pushforward
from symad.functions import register_function, stop_gradient
from symad.graph import Graph
from symad.hessian import hessian, hvp
from symad.implicit import implicit
from symad.jacobian import gradient, jacobian
from symad.joining import join
from symad.reverse import pullback, value_and_gradient
from symad.saving import load, save
from symad.tracing import to_sympy, trace

__all__ = [
    "Dual",
    "Graph",
    "errors",
    "flops",
    "gradient",
    "hessian",
    "hvp",
    "implicit",
    "jacobian",
    "join",
    "live_memory",
    "load",
    "memory",
    "pullback",
    "pushforward",
    "register_function",
    "save",
    "stop_gradient",
    "to_sympy",
    "trace",
    "value_and_gradient",
    "vmap",
]

__version__ = "0.1.0"
