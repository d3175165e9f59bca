"""symad: SymPy in, proved derivatives and fast NumPy or CuPy code out.

Start with `trace`, which makes a `Graph` of SymPy expressions or of a Python function. `gradient`,
`jacobian`, `hessian`, `hvp`, `pushforward` and `pullback` make graphs of derivatives; `check`, `verify` and
`equal` return certificates; `symad.numeric.lower` makes code. For readers of the source: `core` has the data
types, `ops` the mathematics, `tracing` the ways in, `derivatives` the transformations, `verification` the
certificates.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from symad.core.elsewhere import missing
from symad.core.graph import Graph
from symad.core.process import loading
from symad.version import __version__ as __version__

with loading():
    from symad import errors
    from symad import scipy_functions as _in_place_of_scipys  # noqa: F401  (registers them)
    from symad.core.graph import METHODS, Graph
    from symad.cost import flops, live_memory, memory
    from symad.derivatives.hessian import hessian, hvp
    from symad.derivatives.implicit import implicit
    from symad.derivatives.jacobian import gradient, jacobian
    from symad.derivatives.jet import jet
    from symad.derivatives.join import join
    from symad.derivatives.memory_plans import memory_plan, memory_plans
    from symad.derivatives.remat import remat
    from symad.derivatives.sweeps import pullback, pushforward, value_and_gradient
    from symad.derivatives.vmap import vmap
    from symad.evaluation import dual_functions as _functions_on_duals  # noqa: F401  (registers them)
    from symad.evaluation.evaluate import call
    from symad.functions import register_function, stop_gradient
    from symad.numbers.dual import Dual
    from symad.tracing import to_sympy, trace
    from symad.tracing.into_sympy import rules as _what_ops_are_in_sympy  # noqa: F401  (registers answers)

if TYPE_CHECKING:
    from symad import functions, models, numeric, testing
    from symad.numeric.function import function
    from symad.numeric.stability import error_bound
    from symad.saving.save_load import load, save
    from symad.sparsity import color, hessian_sparsity, jacobian_sparsity
    from symad.splitting import splits
    from symad.verification import Certificate, check, equal, verify

__all__ = [
    "Certificate",
    "Dual",
    "Graph",
    "check",
    "color",
    "equal",
    "error_bound",
    "errors",
    "flops",
    "function",
    "functions",
    "gradient",
    "hessian",
    "hessian_sparsity",
    "hvp",
    "implicit",
    "jacobian",
    "jacobian_sparsity",
    "jet",
    "join",
    "live_memory",
    "load",
    "memory",
    "memory_plan",
    "memory_plans",
    "models",
    "numeric",
    "pullback",
    "pushforward",
    "register_function",
    "remat",
    "save",
    "splits",
    "stop_gradient",
    "testing",
    "to_sympy",
    "trace",
    "value_and_gradient",
    "verify",
    "vmap",
]

_LATER = {
    **dict.fromkeys(("Certificate", "check", "equal", "verify"), "symad.verification"),
    "error_bound": "symad.numeric.stability",
    "function": "symad.numeric.function",
    **dict.fromkeys(("dumps", "load", "loads", "save"), "symad.saving.save_load"),
    **dict.fromkeys(("color", "hessian_sparsity", "jacobian_sparsity"), "symad.sparsity"),
    "splits": "symad.splitting",
}
"""Names, and the packages that are imported on first use, so that importing symad stays fast."""

_MODULES = ("corpus", "functions", "jax", "models", "numeric", "pytest", "testing", "torch")
"""Modules imported on first use; ``import *`` omits the bridges to libraries that may not be installed."""


_METHODS = {
    "coloring_html": "symad.display.pages",
    "coloring_svg": "symad.display.pages",
    "derivation": "symad.display.typesetting.derivation",
    "draw": "symad.display.drawing",
    "explain": "symad.display.explain",
    "graph_html": "symad.display.pages",
    "graph_latex": "symad.display.typesetting.graphs",
    "lower": "symad.numeric.lowering",
    "pickled": "symad.saving.save_load",
    "shown_latex": "symad.display.typesetting.graphs",
}


def _on_use(name: str) -> Callable[..., Any]:
    """A method of graphs whose module is imported on the first call."""

    def method(self: Graph, /, *args: Any, **options: Any) -> Any:
        return getattr(import_module(_METHODS[name]), name)(self, *args, **options)

    return method


METHODS.update(call=call, **{name: _on_use(name) for name in _METHODS})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"symad.{name}")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise missing("module 'symad'", name, __dir__())


def __dir__() -> list[str]:
    """The public names, including those that are imported on first use."""
    return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})
