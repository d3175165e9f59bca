"""Functions unknown to SymPy: a user's implementation together with its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy
from sympy.core.function import ArgumentIndexError

from symad.core.arrays import Array, Number
from symad.core.elsewhere import told_arguments
from symad.core.graph import Node
from symad.core.questions import Nodes, Tangent
from symad.errors import DerivativeError, EvaluationError, TraceError
from symad.facts.functions import state
from symad.numbers.function_values import mpmath_function, numpy_function
from symad.ops.elementwise.apply import SLOPES
from symad.sympy_functions.scalar_functions import on_arrays
from symad.tracing.into_sympy.nodes import nodes_to_sympy, with_exact_floats
from symad.tracing.names import reading_stand_ins
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.sessions import SESSION, Session, tracing
from symad.tracing.proxies.wrapped import number
from symad.tracing.run_on_proxies import trace_function
from symad.tracing.sympy_heads import head_of


class Registered(sympy.Function):
    """The functions that were registered by a name; they act elementwise on arrays and traced values."""

    def __new__(cls, *args: Number, **options: bool) -> Any:
        """The expression; a value or traced value for arrays and traced values."""
        elsewhere = on_arrays(cls, args)
        return super().__new__(cls, *args, **options) if elsewhere is None else elsewhere


@told_arguments('write register_function("cube", implementation, [its derivative by each argument])')
def register_function(
    head: type[sympy.Basic] | str,
    implementation: Callable[..., Array],
    derivatives: Sequence[Callable[..., Number] | None] = (),
    mpmath: Callable[..., Number] | None = None,
) -> Any:
    """Register a scalar function with symad: its implementation and its derivatives.

    Args:
        head: a SymPy function class, such as ``sympy.Function("f")``, or a name for a new one.
        implementation: f on floats and NumPy arrays, elementwise.
        derivatives: for each argument ∂f/∂x_i as a Python function of the arguments, written with
            SymPy's or NumPy's functions, or with other registered functions. It is traced, so that it
            has derivatives too. None if the derivative is not known.
        mpmath: f on mpmath numbers, for values of any precision.

    Returns:
        The head. A class that is given stays unchanged, so that SymPy's own ``diff`` treats it as
        before; the class made for a name also has its derivatives as ``fdiff``.

    Raises:
        TraceError: the head is not a function class, or an argument is not callable.

    Example:
        >>> import numpy as np, sympy, symad
        >>> x = sympy.Symbol("x", real=True)
        >>> cube = symad.register_function("cube", lambda u: u**3, [lambda u: 3 * u**2])
        >>> float(symad.gradient(cube(x))(2.0))
        12.0
    """
    if callable(derivatives):
        raise TraceError("register_function: derivatives is a function; give a list, [∂f/∂x_1, ...]")
    rules = tuple(derivatives)
    slopes = {"fdiff": _fdiff(rules)} if rules else {}
    made: Any = head_of(type(head, (Registered,), slopes) if isinstance(head, str) else head)
    if not _is_function_class(made):
        raise TraceError(f"register_function needs a SymPy function class or a name, not {made!r}")
    for given in (implementation, *derivatives, mpmath):
        if given is not None and not callable(given):
            raise TraceError(f"register_function({made.__name__}): {given!r} is not callable")
    state(made, users=implementation, **({} if mpmath is None else {"digits": _named(made.__name__, mpmath)}))
    numpy_function.cache_clear()
    mpmath_function.cache_clear()
    if rules:
        SLOPES[made] = _slope(made, rules)
    return made


def _named(name: str, function: Callable[..., Number]) -> Callable[..., Number]:
    """The function, whose errors mean that it has no value, and say which function has none."""

    def value(*arguments: Number) -> Number:
        try:
            return function(*arguments)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise EvaluationError(f"the mpmath function of {name} has no value: it raises {what}") from error

    return value


def _is_function_class(head: type[sympy.Basic]) -> bool:
    return isinstance(head, type) and issubclass(head, sympy.Function)


def _slope(
    head: type[sympy.Basic], rules: Sequence[Callable[..., Number] | None]
) -> Callable[[Node, Nodes, int], Tangent]:
    def rule(y: Node, args: Nodes, i: int) -> Tangent:
        derivative = rules[i] if i < len(rules) else None
        if derivative is None:
            raise DerivativeError(
                f"the derivative of {head.__name__} in argument {i + 1} of {len(args)} was not given "
                "to register_function"
            )
        around = SESSION.get()
        with tracing(Session(f"the derivative of {head.__name__}", around.dims, {}, around)):
            return number(reading_stand_ins(derivative)(*map(Proxy, args)))

    return rule


def _fdiff(rules: Sequence[Callable[..., Number] | None]) -> Callable[..., sympy.Expr]:
    def fdiff(self: sympy.Function, argindex: int = 1) -> sympy.Expr:
        """∂f/∂x_argindex, as it was registered; with rationals, since SymPy rounds products of Floats."""
        derivative = rules[argindex - 1] if argindex <= len(rules) else None
        if derivative is None:
            raise ArgumentIndexError(self, argindex)
        symbols = [sympy.Dummy(f"x{k}", real=True) for k in range(len(self.args))]
        (expression,) = nodes_to_sympy(with_exact_floats(trace_function(derivative, symbols)))
        return expression.xreplace(dict(zip(symbols, self.args, strict=True)))

    return fdiff
