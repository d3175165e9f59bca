"""Elementwise statements as calls of NumPy's functions, each with the array that it writes into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy

from symad.numeric.numpy_arrays.memory_reuse import new_text
from symad.numeric.passes.memory_layout.memory_spans import Cleared
from symad.numeric.program.expressions import Compute, Expression, Read, literal
from symad.numeric.program.statements import Assign
from symad.numeric.program_passes.lines.by_twos import is_indicator, is_repeated
from symad.numeric.program_passes.memory.allocation import ufunc_name
from symad.numeric.targets.arrays import ALONG_AXES
from symad.ops.arrays.softmax import (
    ExponentialOp,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    Softmax,
    SoftmaxTangent,
)
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select
from symad.sympy_functions.scalar_functions import relu, sigmoid, silu, softplus

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.writer import ArrayWriter


# ---- helper functions of modules; most can write into a given array ------------------------------


SIGMOID = '''def _sigmoid(x, out=None):
    """1/(1 + exp(-x)), which is 0 where the exponential overflows."""
    out = np.negative(x, out)
    np.exp(out, out)
    out += 1
    return np.reciprocal(out, out)
'''

SILU = '''def _silu(x):
    """x/(1 + exp(-x))."""
    y = _sigmoid(x)
    y *= x
    return y
'''

SOFTPLUS = '''def _softplus(x):
    """log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))."""
    e = np.abs(x)
    np.negative(e, e)
    np.exp(e, e)
    np.log1p(e, e)
    e += np.maximum(x, 0)
    return e
'''

SECH = '''def _sech(x, out=None):
    """1/cosh(x) = 2e/(1 + e*e) with e = exp(-|x|), which does not overflow."""
    out = np.abs(x, out)
    np.negative(out, out)
    np.exp(out, out)
    square = out*out
    square += 1
    out /= square
    out += out
    return out
'''

ERFC = '''def _erfc(x):
    """The complementary error function in single precision, to six units in the last place.

    erfc(z) = t Q(t) exp(-z*z) for z >= 0, t = 3/(3 + z), Q of degree 7 with the smallest relative error;
    z*z = h*h + (z - h)*(z + h) with the leading 12 bits h of z, so that its rounding does no harm.
    """
    result = np.empty(x.shape, x.dtype)
    given, made, length = x.reshape(-1), result.reshape(-1), max(1, min(x.size, 32768))  # in the cache
    places = np.empty(5*length + 64, x.dtype)
    places = places[-places.ctypes.data//4 % 16:]  # on cache lines: arithmetic is twice as fast there
    z, t, p, h, limit = (places[k*length:(k + 1)*length] for k in range(5))
    limit.fill(20)
    for k in range(0, x.size, length):
        y, out = given[k:k + length], made[k:k + length]
        if y.size < length:
            z, t, p, h, limit = z[:y.size], t[:y.size], p[:y.size], h[:y.size], limit[:y.size]
        np.abs(y, z)
        np.minimum(z, limit, out=z)
        np.add(z, 3, t)
        np.divide(3, t, t)
        np.multiply(t, -0.12511475384235382, p)
        for c in (0.4031665027141571, -0.2663557529449463, 0.3394627273082733, 0.08063492923974991,
                  0.19389408826828003, 0.18615497648715973, 0.18815715610980988):
            p += c
            p *= t
        np.bitwise_and(z.view(np.int32), -4096, h.view(np.int32))
        np.subtract(h, z, t)
        z += h
        t *= z
        np.exp(t, t)
        p *= t
        np.multiply(h, h, h)
        np.negative(h, h)
        np.exp(h, h)
        p *= h
        sign, bits = t.view(np.uint32), p.view(np.uint32)
        np.bitwise_and(y.view(np.uint32), 0x80000000, sign)
        bits |= sign
        sign >>= 1  # the bits of 2, or of 0
        np.add(p, t, out)  # erfc(-z) = 2 - erfc(z)
    return result
'''

CLEAR = '''def _clear(flat, gaps, out=None):
    """A flat array with zeros after the first `width` of every `step` elements, but the last."""
    if out is None:
        out = flat.copy()
    elif out is not flat:
        out[...] = flat
    for width, step in gaps:
        if step - width == 1:
            out[width::step] = 0
        elif out.size > step:
            size, gap = out.itemsize, ((out.size - 1)//step, step - width)
            np.ndarray(gap, out.dtype, out, width*size, (step*size, size))[...] = 0
    return out
'''

LIMIT = '''def _limit(mask, dtype):
    """Infinity where the mask holds, minus infinity elsewhere."""
    return np.where(mask, dtype(np.inf), dtype(-np.inf))
'''

WITHOUT_OUT = ("_erfc", "_silu", "_softplus")
"""Helpers without an argument ``out``: they always allocate their result."""


INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}


@dataclass(frozen=True)
class ArrayStep:
    """``function(*args)``, written into the array ``out``, or into a new array if ``out`` is None."""

    function: str
    args: tuple[str, ...]
    out: str | None = None

    def text(self, np_: str) -> str:
        """The call as an expression; ``out`` is its last argument if there is one."""
        symbol = INFIX.get(self.function)
        if symbol and self.out is None:
            return f"{self.args[0]} {symbol} {self.args[1]}" if symbol in "+-" else symbol.join(self.args)
        name = self.function if "." in self.function or self.function[0] == "_" else f"{np_}.{self.function}"
        if self.function == "negative" and self.out is None:
            return f"-{self.args[0]}"
        # NumPy deprecates a positional ``out`` of maximum and minimum: it could be meant as an operand
        keyword = "out=" if self.function in ("maximum", "minimum", "fmin") else ""
        return f"{name}({', '.join([*self.args, *([keyword + self.out] if self.out else [])])})"

    def line(self, name: str, np_: str) -> str:
        """The statement that assigns the result to ``name``."""
        symbol = INFIX.get(self.function)
        if symbol and self.out == self.args[0]:
            return f"{self.out} {symbol}= {self.args[1]}"
        if self.out is None or self.out != name:
            return f"{name} = {self.text(np_)}"
        return self.text(np_)


Call = tuple[str, tuple[str, ...]]
"""The name of a function and the texts of its arguments."""
Rule = Callable[[Compute, "ArrayWriter"], "Call | None"]


def call_of(expression: Expression, writer: ArrayWriter) -> Call | None:
    """The call that computes an expression; None if no function of `RULES` does."""
    rule = RULES.get(type(expression.op)) if isinstance(expression, Compute) and expression.shape else None
    return None if rule is None else rule(expression, writer)  # type: ignore[arg-type]  # a `Compute`


def operand(expression: Expression, writer: ArrayWriter) -> str:
    """The text of an operand that NumPy broadcasts."""
    if not expression.shape:
        return writer.number(writer.operand(expression), expression)
    if not isinstance(expression, Compute) or not is_repeated(expression):
        return writer.operand(expression)
    text, op = writer.operand(expression.args[0]), expression.op
    if not isinstance(op, Broadcast):
        return f"{text}.astype({writer.type_text})"
    rank = len(expression.shape)
    if op.axes == tuple(range(rank - len(op.axes), rank)):
        return text
    return f"{text}[{', '.join(':' if k in op.axes else 'None' for k in range(rank))}]"


def _factor(expression: Expression, power: int, writer: ArrayWriter) -> str:
    """The text of a factor; NumPy multiplies by a boolean array as by 1 and 0."""
    if power == 1 and isinstance(expression, Compute) and expression.shape and is_indicator(expression):
        return writer.operand(expression.args[0])
    return operand(expression, writer)


# ---- statements ----------------------------------------------------------------------------------


def elementwise_line(made: Assign, writer: ArrayWriter) -> str | None:
    """The statement of an elementwise value, in place where the program says so; None for other values."""
    found = call_of(made.expression, writer)
    if found is None:
        return None
    if made.over is not None and found[0] not in WITHOUT_OUT:
        place = writer.keep_name(made.value, made.over)
        return ArrayStep(*found, place).line(place, writer.np)
    if made.over in writer.rooms:
        return writer.copied(made.value, made.over, ArrayStep(*found).text(writer.np))
    out = new_text(made.value.shape, writer) if made.kept and found[0] not in WITHOUT_OUT else None
    return ArrayStep(*found, out).line(writer.name_for(made.value), writer.np)


# ---- functions -----------------------------------------------------------------------------------


def sum_call(expression: Compute, writer: ArrayWriter) -> Call | None:
    """a + b, a − b or −a."""
    signs: tuple[int, ...] = expression.op.signs  # type: ignore[attr-defined]  # a sum's
    name = {(1, 1): "add", (1, -1): "subtract", (-1,): "negative"}.get(signs)
    return (name, tuple([operand(a, writer) for a in expression.args])) if name else None


def product_call(expression: Compute, writer: ArrayWriter) -> Call | None:
    """a b, a/b or 1/a."""
    powers: tuple[int, ...] = expression.op.powers  # type: ignore[attr-defined]  # a product's
    name = {(1, 1): "multiply", (1, -1): "divide", (-1,): "reciprocal"}.get(powers)
    pairs = zip(powers, expression.args, strict=True)
    return (name, tuple([_factor(a, p, writer) for p, a in pairs])) if name else None


def power_call(expression: Compute, writer: ArrayWriter) -> Call | None:
    """√a; squares are products already."""
    base, exponent = expression.args
    root = literal(exponent) == sympy.Rational(1, 2) and base.shape
    return ("sqrt", (operand(base, writer),)) if root else None


def function_call(expression: Compute, writer: ArrayWriter) -> Call | None:
    """f(a); max(a, b) or min(a, b)."""
    head: sympy.FunctionClass = expression.op.head  # type: ignore[attr-defined]  # a function's
    args = tuple([operand(a, writer) for a in expression.args])
    if head in (sympy.Max, sympy.Min):
        return ("maximum" if head is sympy.Max else "minimum", args) if len(args) == 2 else None
    if len(args) != 1:
        return None
    if head is relu:
        return "maximum", (*args, writer.number("0"))
    if head in (sigmoid, silu):
        name = writer.helper("_sigmoid", SIGMOID)
        return (name if head is sigmoid else writer.helper("_silu", SILU)), args
    if head is softplus:
        return writer.helper("_softplus", SOFTPLUS), args
    if head is sympy.sech:
        return writer.helper("_sech", SECH), args
    if head is sympy.erfc and writer.dtype == "float32":
        return writer.helper("_erfc", ERFC), args
    found = ufunc_name(head)
    if found is None:
        return None
    if "." in found:
        writer.imports.add("import scipy.special")
    return found, args


def cleared_call(expression: Compute, writer: ArrayWriter) -> Call:
    """A span of memory whose gaps are set to zero."""
    gaps = expression.op.gaps  # type: ignore[attr-defined]  # of `Cleared`
    return writer.helper("_clear", CLEAR), (operand(expression.args[0], writer), str(gaps))


def select_call(expression: Compute, writer: ArrayWriter) -> Call | None:
    """The scores of a softmax under a broadcast mask, −∞ where the mask does not hold.

    This is the minimum of the scores and of a limit: ∞ where the mask holds, −∞ elsewhere. A masked score may
    be NaN, and ``fmin`` ignores NaN.
    """
    mask, scores, _ = expression.args
    if isinstance(mask, Read) or not is_repeated(mask):
        return None
    limit = f"{writer.helper('_limit', LIMIT)}({operand(mask, writer)}, {writer.type_text})"
    return "fmin", (operand(scores, writer), limit)


def softmax_call(expression: Compute, writer: ArrayWriter) -> Call:
    """A softmax over some axes, a derivative of it or of its logarithm."""
    op = expression.op
    assert isinstance(op, ExponentialOp)
    given = [operand(a, writer) for a in expression.args]
    return writer.helper(ALONG_AXES[type(op)]), (*given, str(op.axes))


RULES: dict[type, Rule] = {
    Add: sum_call,
    Mul: product_call,
    Pow: power_call,
    Apply: function_call,
    Cleared: cleared_call,
    Select: select_call,
    **dict.fromkeys((Softmax, SoftmaxTangent, LogSoftmaxTangent, LogSoftmaxCotangent), softmax_call),
}
"""The rules of the ops that are calls of functions of arrays."""
