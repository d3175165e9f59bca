"""Scalar SymPy expressions as CUDA C statements.

Every subexpression used twice is computed once (one shared elimination over all expressions given),
and products and sums are grouped so that factors which change less often stand together: the
compiler then moves them out of the inner loop, as it may not reorder floating-point operations
itself. The text calls `HELPERS` and, for approximations, prims.h; no other header.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import sympy as sp
from sympy.codegen import cfunctions as cf

from symad.gpu.sympy_to_cuda.operands import ATOM, Printer, Style, Variables
from symad.gpu.sympy_to_cuda.writers import write
from symad.numeric.pairs.stable_sympy import children, topological

HELPERS = """\
#ifndef SYMAD_HELPERS
#define SYMAD_HELPERS
__device__ __forceinline__ int symad_mod(int a, int n) {
  int r = a % n;
  return (r != 0 && ((r < 0) != (n < 0))) ? r + n : r;
}
__device__ __forceinline__ int symad_floordiv(int a, int n) { return (a - symad_mod(a, n)) / n; }
__device__ __forceinline__ int symad_min(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ int symad_max(int a, int b) { return a > b ? a : b; }
__device__ __forceinline__ int symad_clamp(int a, int n) {
  return symad_max(0, symad_min(a, n - 1));
}
#endif
"""

def statements(
    targets: Sequence[tuple[str, sp.Basic]],
    variables: Variables,
    style: Style,
    prefix: str = "w",
) -> list[str]:
    """C statements that assign each expression to its target, sharing common subexpressions.

    Args:
        targets: (C lvalue, expression) pairs, assigned in order after all temporaries.
        variables: the C text of each symbol that may occur.
        style: precision and approximations.
        prefix: the prefix of the temporaries' names.

    Raises:
        LoweringError: an unknown symbol, or a function without a C form.
    """
    exprs = [fold_exponentials(expr, style) for _, expr in targets]
    printer = Printer(variables, style)
    uses = Counter(c for e in topological(exprs) for c in children(e))
    lines: list[str] = []
    for expr in topological(exprs):
        text = write(printer, expr)
        if _needs_name(expr, uses[expr]):
            name = f"{prefix}{len(lines)}"
            kind = printer.kind(expr)
            lines.append(f"const {style.real if kind == 'real' else kind} {name} = {text};")
            printer.binding[expr] = ATOM
            printer.negative.discard(expr)
            text = name
        printer.text[expr] = text
    for (target, _), expr in zip(targets, exprs, strict=True):
        lines.append(f"{target} = {printer.text[expr]};")
    return lines


def kind_of(expr: sp.Basic, variables: Variables) -> str:
    """The type of the C text of ``expr``: "int", "real" or "bool"."""
    printer = Printer(variables, Style())
    for part in topological([expr]):
        printer.text[part] = write(printer, part)
    return printer.kind(expr)


def _needs_name(expr: sp.Basic, uses: int) -> bool:
    """Whether a node gets a name: shared nodes and repeated operands do; constants and symbols do not."""
    if not expr.args or isinstance(expr, sp.Number):
        return False
    return uses > 1 or expr.is_Add or isinstance(expr, (sp.Function, sp.Pow))


def fold_exponentials(expr: sp.Basic, style: Style) -> sp.Basic:
    """exp(a) as 2^(a log₂e) in float, with log₂e folded into the factors of a.

    This takes one instruction on the device instead of five; the relative error grows by |a| 2⁻²⁴.
    """
    if style.real != "float":
        return expr
    log2e = sp.Float(1.4426950408889634074, 20)
    return expr.replace(sp.exp, lambda a: sp.exp(a) if a.is_number else cf.exp2(_scaled(a, log2e)))


def _scaled(expr: sp.Expr, factor: sp.Expr) -> sp.Expr:
    if expr.is_Add:
        return sp.Add(*[_scaled(term, factor) for term in expr.args])
    return sp.Mul(factor, expr)
