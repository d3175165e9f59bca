"""Terms: expressions of real numbers as `SymadStatements.v` defines them. Equal terms are one object.

`HEADS` are the functions of which a lemma proves the derivative; a head without one is in `WITHOUT_LEMMA`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp

from symad.errors import SymadError
from symad.sympy_functions import scalar_functions as ours
from symad.tracing.from_sympy.parameter_derivatives import COMPANIONS

MAX_TERM_DEPTH = 40
"""The maximum depth of a term without a name: deep nesting is slow or impossible in Python and in Coq."""


Part = TypeVar("Part", bound=Hashable)


def postorder(roots: Iterable[Part], parts_of: Callable[[Part], Sequence[Part]]) -> list[Part]:
    """All parts, each once and after its own parts."""
    order: dict[Part, None] = {}
    stack: list[tuple[Part, bool]] = [(r, False) for r in reversed(list(roots))]
    while stack:
        part, done = stack.pop()
        if done:
            order[part] = None
        elif part not in order:
            stack.append((part, True))
            stack.extend((p, False) for p in reversed(parts_of(part)) if p not in order)
    return list(order)


class CoqError(SymadError, ValueError):
    """A model cannot be written for Coq; the message names the part and a remedy."""


@dataclass(frozen=True, eq=False)
class CoqTerm:
    """One constructor of the inductive type ``term``.

    Args:
        head: Var, Int, Pi, Add, Sub, Mul, Div, Opp, Pow, App or App2.
        args: the subterms.
        value: the number of a Var, the integer of an Int, the exponent of a Pow.
        function: the constructor of ``fn`` or ``fn2`` for App and App2.
    """

    head: str
    args: tuple[CoqTerm, ...] = ()
    value: int = 0
    function: str = ""
    depth: int = 0


@dataclass
class CoqTerms:
    """Makes terms, and keeps the names given to some of them.

    ``inputs`` is the number of inputs; ``lets`` has the terms that the numbers after the inputs stand for.
    """

    inputs: int
    lets: list[CoqTerm] = field(default_factory=list)
    _made: dict[tuple[str, tuple[int, ...], int, str], CoqTerm] = field(default_factory=dict)
    _named: dict[CoqTerm, CoqTerm] = field(default_factory=dict)

    def make(self, head: str, *args: CoqTerm, value: int = 0, function: str = "") -> CoqTerm:
        """The term; deep arguments get names."""
        if head not in {"Add", "Sub"}:  # sums are printed by a loop, without nesting
            args = tuple(self.name(a) if a.depth >= MAX_TERM_DEPTH else a for a in args)
        key = (head, tuple(map(id, args)), value, function)
        if key not in self._made:
            left = args[0].depth if args and head in {"Add", "Sub"} else -1
            rest = max((a.depth for a in (args[1:] if left >= 0 else args)), default=-1)
            self._made[key] = CoqTerm(head, args, value, function, max(left, rest + 1))
        return self._made[key]

    def name(self, term: CoqTerm) -> CoqTerm:
        """The variable that stands for a term, which is kept as a statement of its own."""
        if term.head in {"Var", "Int", "Pi"}:
            return term
        if term not in self._named:
            self.lets.append(term)
            self._named[term] = self.make("Var", value=self.inputs + len(self.lets))
        return self._named[term]

    def var(self, number: int) -> CoqTerm:
        """The input or name of this number, counted from 1."""
        return self.make("Var", value=number)

    def integer(self, value: int) -> CoqTerm:
        """An integer."""
        return self.make("Int", value=value)

    def rational(self, over: int, under: int) -> CoqTerm:
        """over/under, with the sign in the integer."""
        return self.integer(over) if under == 1 else self.div(self.integer(over), self.integer(under))

    def add(self, a: CoqTerm, b: CoqTerm) -> CoqTerm:
        """a + b."""
        return self.make("Add", a, b)

    def sub(self, a: CoqTerm, b: CoqTerm) -> CoqTerm:
        """a − b."""
        return self.make("Sub", a, b)

    def mul(self, a: CoqTerm, b: CoqTerm) -> CoqTerm:
        """a b."""
        return self.make("Mul", a, b)

    def div(self, a: CoqTerm, b: CoqTerm) -> CoqTerm:
        """a / b."""
        return self.make("Div", a, b)

    def opp(self, a: CoqTerm) -> CoqTerm:
        """−a."""
        return self.make("Opp", a)

    def power(self, a: CoqTerm, exponent: int) -> CoqTerm:
        """A natural power."""
        return a if exponent == 1 else self.make("Pow", a, value=exponent)

    def app(self, function: str, *args: CoqTerm) -> CoqTerm:
        """A function of one or two arguments."""
        return self.make("App" if len(args) == 1 else "App2", *args, function=function)

    def signed_sum(self, parts: list[tuple[bool, CoqTerm]]) -> CoqTerm:
        """The sum of terms from the left; a term whose flag is true is subtracted."""
        (minus, total), *rest = parts
        total = self.opp(total) if minus else total
        for minus, term in rest:
            total = self.sub(total, term) if minus else self.add(total, term)
        return total

    def quotient(self, over: list[CoqTerm], under: list[CoqTerm]) -> CoqTerm:
        """The quotient of two products."""
        under = [u for u in under if u is not self.integer(1)]
        below = self.product(under)
        if not over:
            return self.integer(1) if not under else self.app("Inv", below)
        return self.div(self.product(over), below) if under else self.product(over)

    def product(self, factors: list[CoqTerm]) -> CoqTerm:
        """The product of terms from the left; 1 if there are none."""
        if not factors:
            return self.integer(1)
        total = factors[0]
        for factor in factors[1:]:
            total = self.mul(total, factor)
        return total

    def real_power(self, base: CoqTerm, exponent: Fraction, root: int) -> CoqTerm:
        """base^exponent by the ``root``-th root, so that x^(3/2) is sqrt(x)^3; by Rpower if ``root`` is 0."""
        if exponent < 0:
            return self.app("Inv", self.real_power(base, -exponent, root))
        if exponent.denominator == 1:
            return self.power(base, exponent.numerator)
        if root == 0:
            return self.app("Power", base, self.rational(exponent.numerator, exponent.denominator))
        made = self.app("Sqrt", base) if root == 2 else self.app("Power", base, self.rational(1, root))
        return self.power(made, int(exponent * root))


# ---- the functions whose derivative is proved by a lemma of Coq ----------------------------------


HEADS: dict[sympy.FunctionClass, str] = {
    sympy.exp: "Exp", sympy.log: "Log", sympy.sin: "Sin", sympy.cos: "Cos", sympy.tan: "Tan",
    sympy.sec: "Sec", sympy.csc: "Csc", sympy.cot: "Cot", sympy.asin: "Asin", sympy.acos: "Acos",
    sympy.atan: "Atan", sympy.acot: "Acot", sympy.sinh: "Sinh", sympy.cosh: "Cosh", sympy.tanh: "Tanh",
    sympy.sech: "Sech", sympy.csch: "Csch", sympy.coth: "Coth", sympy.asinh: "Asinh", sympy.acosh: "Acosh",
    sympy.atanh: "Atanh", sympy.Abs: "Abs", sympy.sign: "Sign", sympy.Heaviside: "Heaviside",
    sympy.Max: "Maximum", sympy.Min: "Minimum", sympy.erf: "Erf", sympy.erfc: "Erfc", sympy.erfi: "Erfi",
    sympy.fresnels: "Fresnels", sympy.fresnelc: "Fresnelc", ours.sigmoid: "Sigmoid",
    ours.softplus: "Softplus", ours.logcosh: "Logcosh", ours.silu: "Silu", ours.xlogy: "Xlogy",
    cfunctions.log1p: "Log1p", cfunctions.expm1: "Expm1", cfunctions.log2: "Log2",
    cfunctions.log10: "Log10", cfunctions.exp2: "Exp2", cfunctions.hypot: "Hypot", logaddexp: "Logaddexp",
}  # fmt: skip
"""The constructor of ``fn`` or ``fn2`` for each function. Its lemma is d_ and the name in small letters."""

MORE = ("Inv", "Sqrt", "Power", "Less")
"""What SymPy writes as powers, and what conditions are made of."""

RENAMED = {
    "Log": "ln", "Asinh": "arcsinh", "Abs": "Rabs", "Maximum": "Rmax", "Minimum": "Rmin", "Inv": "Rinv",
    "Power": "Rpower",
}  # fmt: skip

FUNCTIONS = {name: RENAMED.get(name, name.lower()) for name in (*HEADS.values(), *MORE)}
"""The functions that the constructors stand for."""

STEP = "a step with many jumps; the region away from them has no form here"
BY_DECREE = "its derivative is 0 by definition and not that of its values"
NO_DEFINITION = (
    "Coquelicot has no definition of it; it would need a theory of its series or integral with a parameter"
)
INVERSE = "it is the inverse of another function, which is not defined by a formula"
OF_PARTS = "it is a formula of functions that have lemmas; write it as that formula"
INTEGER = "its other argument is an order or a degree, which is an integer"
SINGULAR = "an integral from a singular or removable point, which needs a continuation"

WITHOUT_LEMMA: dict[str, str] = {
    **dict.fromkeys(["floor", "ceiling", "frac", "Mod"], STEP),
    "stop_gradient": BY_DECREE,
    **dict.fromkeys(["asec", "acsc", "asech", "acsch", "acoth", "relu", "gelu", "log_ndtr", "normal_ratio",
                     "normal_excess"], OF_PARTS),
    "atan2": "its branches meet along half lines; each branch is an arctangent, which has a lemma",
    "sinc": "its value at 0 is a limit; elsewhere it is sin(x)/x, which is written by lemmas",
    **dict.fromkeys(["LambertW", "erfinv", "erfcinv"], INVERSE),
    **dict.fromkeys(["Si", "Ci", "Shi", "Chi", "Ei", "E1"], SINGULAR),
    **dict.fromkeys(
        ["gamma", "loggamma", "digamma", "polygamma", "factorial", "binomial", "beta", "zeta", "polylog",
         "lowergamma", "uppergamma", "expint", "betainc", "betainc_regularized", "gammainc", "gammaincc",
         "stdtr", "airyai", "airybi", "airyaiprime", "airybiprime", "elliptic_k", "elliptic_e", "elliptic_f",
         "elliptic_pi", "elliptic_moment", "polylog_slope",
         "hyp0f1", "hyp1f1", "hyp2f1", "owens_t", "voigt_profile", "voigt_dispersion",
         *(made.__name__ for made in COMPANIONS.values())],
        NO_DEFINITION,
    ),
    **dict.fromkeys(
        ["jn", "yn", "spherical_in", "besselj", "bessely", "besseli", "besselk", "ive", "legendre",
         "chebyshevt", "chebyshevu", "hermite", "laguerre", "gegenbauer", "jacobi", "assoc_laguerre",
         "assoc_legendre"],
        INTEGER,
    ),
}  # fmt: skip
"""The functions of the derivative table that have no lemma, by name, with the reason."""
