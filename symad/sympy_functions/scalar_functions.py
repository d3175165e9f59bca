"""Scalar functions that models need and SymPy lacks, as SymPy functions.

Each has its derivative (`fdiff`), its definition in elementary functions (for exact and
high-precision values and for ``rewrite``), and a floating-point form that is accurate everywhere. Each
also takes matrix expressions, NumPy arrays and traced values, elementwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp as logaddexp_head
from sympy.core.function import ArgumentIndexError
from sympy.tensor.array.expressions.array_expressions import _ArrayExpr

from symad.core.arrays import Array, ArrayLike
from symad.core.expressions import as_sympy
from symad.core.given import numbers_only
from symad.core.graph import ZERO, Node
from symad.core.questions import Nodes, Tangent
from symad.errors import TraceError
from symad.facts.functions import EVEN, state
from symad.numbers.function_values import numpy_function
from symad.ops.basic.arithmetic import add, div, mul, neg, sub
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import apply, choice, slope
from symad.ops.elementwise.powers import power, sqrt
from symad.ops.elementwise.selection import compare, equal, indicator, logic, select
from symad.ops.elementwise.slopes import of_layer
from symad.sympy_functions.held_forms import ArrayElementwiseApplyFunc


def on_arrays(head: sympy.FunctionClass, args: tuple[Any, ...]) -> Array | None:
    """``head`` on traced values, NumPy arrays or matrices; None if all arguments are SymPy scalars.

    Raises:
        TraceError: a function of several arguments was given a matrix expression, or an argument is not real.
    """
    traced = next((a for a in args if hasattr(type(a), "apply_function")), None)
    if traced is not None:
        return traced.apply_function(head, args)
    if any(isinstance(a, (np.ndarray, np.generic)) for a in args):
        named = {f"argument {k}": a for k, a in enumerate(args, 1)}
        return numbers_only(head.__name__, numpy_function(head), **named)
    arrays = [
        a for a in args if isinstance(a, (sympy.MatrixExpr, sympy.MatrixBase, sympy.NDimArray, _ArrayExpr))
    ]
    if not arrays:
        refuse_text(head, args)
        return None
    if len(args) > 1:
        raise TraceError(
            f"{head.__name__} of {len(args)} arguments takes no matrix expressions; use it in a "
            "Python function of arrays"
        )
    (x,) = args
    return ArrayElementwiseApplyFunc(head, x) if isinstance(x, _ArrayExpr) else x.applyfunc(head)


def refuse_text(head: sympy.FunctionClass, args: tuple[Any, ...]) -> None:
    """Refuses what SymPy's functions would read as text, and so execute.

    Raises:
        TraceError: an argument is text, holds text, or is an object that SymPy reads by its text.
    """
    for a in args:
        try:
            if isinstance(a, (tuple, set, frozenset, Mapping)):
                raise TypeError
            as_sympy(a)
        except (ValueError, TypeError):  # SympifyError is a ValueError
            raise TraceError(
                f"{head.__name__} was given a {type(a).__name__}; its arguments are numbers, arrays, "
                "SymPy expressions and traced values, and text is never read as one"
            ) from None


class ScalarFunction(sympy.Function):
    """A real function with a definition in functions that SymPy knows."""

    total = True
    """True if the function is real for all real arguments."""

    def __new__(cls, *args: ArrayLike, **options: bool) -> Any:
        """The expression; a value or traced value for arrays and traced values."""
        elsewhere = on_arrays(cls, args)
        return super().__new__(cls, *args, **options) if elsewhere is None else elsewhere

    @classmethod
    def definition(cls, *args: sympy.Expr) -> sympy.Expr:
        """The same value in elementary functions."""
        raise NotImplementedError

    def _eval_evalf(self, prec: int) -> sympy.Expr:
        return self.definition(*self.args)._eval_evalf(prec)

    def _eval_rewrite(
        self, rule: type[sympy.Basic], args: tuple[sympy.Expr, ...], **hints: bool
    ) -> sympy.Expr:
        return self.definition(*args)

    def _eval_expand_func(self, **hints: bool) -> sympy.Expr:
        return self.definition(*self.args)

    def _eval_is_real(self) -> bool | None:
        return True if self.total and all(a.is_real for a in self.args) else None


class sigmoid(ScalarFunction):
    """σ(x) = 1/(1 + exp(−x))."""

    nargs = 1

    @classmethod
    def definition(cls, x: sympy.Expr) -> sympy.Expr:
        """1/(1 + exp(−x))."""
        return 1 / (1 + sympy.exp(-x))

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """σ' = σ (1 − σ)."""
        return self * (1 - self)


class softplus(ScalarFunction):
    """log(1 + exp(x))."""

    nargs = 1

    @classmethod
    def definition(cls, x: sympy.Expr) -> sympy.Expr:
        """log(1 + exp(x))."""
        return sympy.log(1 + sympy.exp(x))

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """The sigmoid."""
        return sigmoid(self.args[0])


class logcosh(ScalarFunction):
    """log(cosh(x))."""

    nargs = 1

    @classmethod
    def definition(cls, x: Array) -> sympy.Expr:
        """log(cosh(x))."""
        return sympy.log(sympy.cosh(x))

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """The hyperbolic tangent."""
        return sympy.tanh(self.args[0])


class relu(ScalarFunction):
    """max(x, 0), with derivative 0 at 0."""

    nargs = 1

    @classmethod
    def definition(cls, x: Array) -> sympy.Expr:
        """max(x, 0)."""
        return sympy.Max(x, 0)

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """The step at 0, 0 there."""
        return sympy.Heaviside(self.args[0], 0)


class silu(ScalarFunction):
    """x σ(x), also known as swish (Hendrycks and Gimpel 2016, arXiv:1606.08415)."""

    nargs = 1

    @classmethod
    def definition(cls, x: Array) -> sympy.Expr:
        """x/(1 + exp(−x))."""
        return x / (1 + sympy.exp(-x))

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """σ(x) (1 + x σ(−x))."""
        x = self.args[0]
        return sigmoid(x) * (1 + x * sigmoid(-x))


class gelu(ScalarFunction):
    """x Φ(x) with the normal distribution function Φ (Hendrycks and Gimpel 2016), exactly."""

    nargs = 1

    @classmethod
    def definition(cls, x: Array) -> sympy.Expr:
        """x erfc(−x/√2)/2."""
        return x * sympy.erfc(-x / sympy.sqrt(2)) / 2

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """Φ(x) + x φ(x)."""
        x = self.args[0]
        return sympy.erfc(-x / sympy.sqrt(2)) / 2 + x * sympy.exp(-(x**2) / 2) / sympy.sqrt(2 * sympy.pi)


class xlogy(ScalarFunction):
    """x log(y), and 0 where x = 0."""

    nargs = 2
    total = False

    @classmethod
    def eval(cls, x: sympy.Expr, y: sympy.Expr) -> sympy.Expr | None:
        """0 for a literal 0."""
        return sympy.S.Zero if x.is_zero else None

    @classmethod
    def definition(cls, x: Array, y: Array) -> sympy.Expr:
        """x log(y) guarded at x = 0."""
        return sympy.Piecewise((0, sympy.Eq(x, 0)), (x * sympy.log(y), True))

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """log(y), x/y."""
        x, y = self.args
        if argindex == 1:
            return sympy.log(y)
        if argindex == 2:
            return x / y
        raise ArgumentIndexError(self, argindex)


class stop_gradient(ScalarFunction):
    """The value itself, whose derivative is taken to be 0."""

    nargs = 1

    @classmethod
    def eval(cls, x: sympy.Expr) -> sympy.Expr | None:
        """Numbers themselves: they have no derivative anyway."""
        return x if x.is_Number else None

    @classmethod
    def definition(cls, x: Array) -> Array:
        """x."""
        return x

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """0, by definition."""
        return sympy.S.Zero


def log1p(x: Array) -> Array:
    """log(1 + x), accurate near 0; SymPy's ``codegen.cfunctions.log1p`` on SymPy expressions.

    Returns:
        log(1 + x) in the shape of x, of the kind of the arguments: an array, a SymPy object or a traced
        value.

    Raises:
        TraceError: ``x`` is neither a real number or array, a SymPy object nor a traced value.

    Example:
        >>> log1p(np.array([1e-20]))
        array([1.e-20])
    """
    return _of_sympy(cfunctions.log1p, x)


def expm1(x: Array) -> Array:
    """Exp(x) − 1, accurate near 0; SymPy's ``codegen.cfunctions.expm1`` on SymPy expressions.

    Returns:
        exp(x) − 1 in the shape of x, of the kind of the arguments: an array, a SymPy object or a traced
        value.

    Raises:
        TraceError: ``x`` is neither a real number or array, a SymPy object nor a traced value.

    Example:
        >>> expm1(np.array([1e-20]))
        array([1.e-20])
    """
    return _of_sympy(cfunctions.expm1, x)


def logaddexp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)); SymPy's ``codegen.numpy_nodes.logaddexp`` on SymPy expressions.

    Returns:
        log(exp(x) + exp(y)) in the common shape, of the kind of the arguments: an array, a SymPy object or
        a traced value.

    Raises:
        TraceError: an argument is neither a real number or array, a SymPy scalar nor a traced value.
        ShapeError: traced values do not broadcast together (ValueError for arrays, by NumPy).

    Example:
        >>> logaddexp(np.array([1000.0]), -1000.0)
        array([1000.])
    """
    return _of_sympy(logaddexp_head, x, y)


def hypot(x: Array, y: Array) -> Array:
    """√(x² + y²); SymPy's ``codegen.cfunctions.hypot`` on SymPy expressions.

    Returns:
        √(x² + y²) in the common shape, of the kind of the arguments: an array, a SymPy object or a traced
        value.

    Raises:
        TraceError: an argument is neither a real number or array, a SymPy scalar nor a traced value.
        ShapeError: traced values do not broadcast together (ValueError for arrays, by NumPy).

    Example:
        >>> hypot(np.array([3e200]), 4e200)
        array([5.e+200])
    """
    return _of_sympy(cfunctions.hypot, x, y)


def _of_sympy(head: type[sympy.Basic], *args: Array) -> Array:
    elsewhere = on_arrays(head, args)
    return head(*args) if elsewhere is None else elsewhere


state(
    sigmoid,
    "scipy.special.expit",
    balls=lambda a: 1 / (1 + (-a).exp()),
    total=True,
    monotone=1,
    range=(0, 1),
    limits=(0, 1),
)
state(
    softplus,
    "symad.special.softplus",
    balls=lambda a: a.exp().log1p(),
    total=True,
    monotone=1,
    range=(0, inf),
    limits=(0, inf),
)
state(logcosh, "symad.special.logcosh", total=True, parity=EVEN)
state(relu, "symad.special.relu", total=True, range=(0, inf), limits=(0, inf))
state(silu, "symad.special.silu", total=True, limits=(0, inf))
state(gelu, "symad.special.gelu", total=True)
state(xlogy, "scipy.special.xlogy")
state(stop_gradient, "numpy.positive", total=True)


# ---- derivatives in well-conditioned form -------------------------------------------------------


@slope(sigmoid)
def sigmoid_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """1/(2 cosh(x/2))², with all digits; y (1 − y) in layers, which store y anyway."""
    if of_layer(args[0]):
        return mul(y, sub(constant(1), y))
    return div(power(apply(sympy.sech, div(args[0], constant(2))), constant(2)), constant(4))


@slope(softplus)
def softplus_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """The sigmoid."""
    return apply(sigmoid, args[0])


@slope(relu)
def relu_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """1 where x > 0."""
    return indicator(compare(">", args[0], constant(0)))


@choice(relu)
def relu_choice(y: Node, k: int) -> Node:
    """Where x > 0."""
    return logic("not", compare("<=", y.args[0], constant(0)))


@slope(xlogy)
def xlogy_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """log(y); x/y, and 0 at (0, 0): the function is 0 for x = 0 and every y."""
    x, y_ = args
    if i == 0:
        return apply(sympy.log, y_)
    if constant_value(x) is not None:
        return div(x, y_)
    zero = constant(0)
    return select(logic("and", equal(x, zero), equal(y_, zero)), zero, div(x, y_))


@slope(stop_gradient)
def stop_gradient_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """0."""
    return ZERO


@choice(stop_gradient)
def stop_gradient_choice(y: Node, k: int) -> Node:
    """Never."""
    return constant(False)


@slope(logaddexp_head)
def logaddexp_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """exp(x_i − y), a sigmoid of the difference."""
    return apply(sigmoid, sub(args[i], args[1 - i]))


@slope(cfunctions.hypot)
def hypot_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """x_i / y, and 0 at the origin, where no derivative exists."""
    return select(equal(y, constant(0)), sqrt(y), div(args[i], y))  # √y is 0 there, and its slope is 0


@slope(silu)
def silu_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """σ(x) + y σ(−x)."""
    (x,) = args
    return add(apply(sigmoid, x), mul(y, apply(sigmoid, neg(x))))


@slope(gelu)
def gelu_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """Φ(x) + x φ(x), with Φ by erfc of the negative: SymPy's 2 − erfc(x) would cancel for x < 0."""
    (x,) = args
    root = sqrt(constant(2))
    distribution = div(apply(sympy.erfc, neg(div(x, root))), constant(2))
    density = div(apply(sympy.exp, neg(div(mul(x, x), constant(2)))), mul(root, sqrt(constant(sympy.pi))))
    return add(distribution, mul(x, density))
