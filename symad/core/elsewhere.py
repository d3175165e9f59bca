"""Names, options and commands of other libraries, and what they are called here: tables, and the messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import ParamSpec, TypeVar

from symad.errors import TraceError

P = ParamSpec("P")
R = TypeVar("R")

NAMES = {
    "backward": "symad.gradient", "certify": "symad.check", "checkpoint": "symad.remat",
    "code": "symad.numeric.lower(f).source", "compile": "symad.numeric.lower", "diff": "symad.gradient",
    "grad": "symad.gradient", "hess": "symad.hessian", "jac": "symad.jacobian", "jacfwd": "symad.jacobian",
    "jacrev": "symad.jacobian", "jit": "symad.numeric.lower", "jvp": "symad.pushforward",
    "lambdify": "symad.numeric.lower", "prove": "symad.check", "source": "symad.numeric.lower(f).source",
    "value_and_grad": "symad.value_and_gradient", "vjp": "symad.pullback",
}  # fmt: skip
"""Functions and attributes of SymPy, JAX and PyTorch."""

OPTIONS = {
    "args": ("inputs",), "argnums": ("wrt",), "device": ("backend",), "dim": ("axis",), "f": ("step",),
    "grad": ("gradient",), "hess": ("hessian",), "init": ("initial",), "is_causal": ("causal",),
    "jac": ("gradient", "jacobian"), "keepdim": ("keepdims",), "modules": ("backend",), "shapes": ("inputs",),
    "target": ("backend",), "variables": ("wrt",), "x": ("wrt",), "xs": ("inputs",),
}  # fmt: skip
"""Options of SymPy, SciPy, JAX and PyTorch."""

BACKENDS = {
    "cuda": "backend='cupy' runs on a GPU", "gpu": "backend='cupy' runs on a GPU",
    "jax": "symad.jax makes functions of JAX", "numba": "backend='c' compiles",
    "torch": "symad.torch.as_function makes functions of PyTorch",
}  # fmt: skip
"""Libraries that are no backend."""

COMMANDS = {
    "certify": "check", "compile": "lower", "derive": "lower --of gradient",
    "diff": "lower --of gradient", "gradient": "lower --of gradient", "plot": "draw", "print": "lower",
    "prove": "check", "run": "tour", "show": "explain", "test": "check", "verify": "check",
}  # fmt: skip
"""Words that users try as commands."""


def missing(owner: str, name: str, known: Collection[str]) -> AttributeError:
    """The error for an attribute that ``owner`` lacks: it says what is called so here, if anything is.

    ``known`` are the names in a module, in which typing errors are looked for; empty for an object.
    """
    return AttributeError(f"{owner} has no attribute {name!r}{_place_of(name, owner, known)}")


def _place_of(name: str, owner: str, known: Collection[str]) -> str:
    """Where a name may be found; empty for private ones, which tools ask for."""
    if name.startswith("_"):
        return ""
    if name in NAMES:
        return f"; use {NAMES[name]}"
    for place in ("symad", "symad.functions", "symad.numeric"):
        if name in import_module(place).__all__:
            return f"; it is {place}.{name}"
    if owner == "module 'symad'" and find_spec(f"symad.{name}"):
        return f"; import symad.{name} first"
    outside = [f"{library}.{name}" for library in ("numpy", "sympy") if hasattr(import_module(library), name)]
    if outside and known:
        return f"; symad reads {' and '.join(outside)}"
    near = get_close_matches(name, known, 1)
    return f"; did you mean {owner.split()[-1].strip(chr(39))}.{near[0]}?" if near else ""


def option_here(name: str, known: Collection[str]) -> str:
    """What the option of a call is called here, as a part of a message; empty if it is not known."""
    here = [own for own in OPTIONS.get(name, ()) if own in known] or get_close_matches(name, known, 1)
    return f"{name}= is {'= or '.join(here)}= here" if here else ""


def told_arguments(usage: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: calls with other arguments than the function takes get a message that says what to do.

    Args:
        usage: a call as it should be written, for functions whose signature does not show it.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        own = signature(function)
        title = function.__name__

        @wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            try:
                return function(*args, **options)
            except TypeError:  # only then, so that other calls bind no signature
                try:
                    own.bind(*args, **options)
                except TypeError as error:
                    told = _refusal(title, own.parameters, options, error, usage)
                    raise TraceError(told) from None
                raise

        return call

    return decorate


def _refusal(
    title: str, known: Collection[str], options: Mapping[str, object], error: TypeError, usage: str
) -> str:
    hints = [hint for name in options if name not in known and (hint := option_here(name, known))]
    several = "too many positional" in str(error) and "wrt" in known
    hints += ["several inputs go in one list, wrt=[...]"] if several else []
    return f"{title}: {error}; " + ("; ".join(hints) or usage or f"it takes {', '.join(known)}")
