"""Programs: named terms, the conditions of the domain, and the outputs.

`is_somewhere` tells whether all conditions hold at some point: if at none, a theorem says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symad.numbers.function_values import numpy_function
from symad.verification.coq.terms import HEADS, CoqTerm, CoqTerms, postorder
from symad.verification.fields.prime_fields import Array

NONZERO = {"Inv", "Acot", "Csch", "Coth", "Abs", "Sign", "Heaviside"}
POSITIVE = {"Log", "Sqrt", "Log2", "Log10"}
STATED = {"Tan", "Sec", "Csc", "Cot", "Asin", "Acos", "Atanh", "Acosh", "Log1p"}
ALWAYS_POSITIVE = {"Exp", "Cosh", "Sech", "Sigmoid", "Softplus"}

Need = tuple[str, CoqTerm]
"""A function and its argument: the condition under which it has a derivative there."""


@dataclass(frozen=True)
class ProgramLine:
    """A statement of a program: a condition (with the function it is for), or a named term."""

    term: CoqTerm
    need: str = ""


@dataclass
class CoqProgram:
    """Statements and outputs.

    ``with_domain`` states the conditions that `SymadCertificates.enough` requires, except those that it
    derives itself, such as exp(x) > 0 and sums of squares. ``positive``: inputs declared positive.
    """

    terms: CoqTerms
    outputs: list[CoqTerm]
    with_domain: bool = True
    positive: tuple[int, ...] = ()
    steps: list[ProgramLine] = field(default_factory=list)

    def __post_init__(self) -> None:
        conditions = _Conditions(self.terms)
        if self.with_domain and self.positive:
            self._state_positive(conditions)
        for number, term in enumerate(list(self.terms.lets), self.terms.inputs + 1):
            self._state(conditions, term)
            self.steps.append(ProgramLine(term))
            if self.with_domain:
                conditions.named(term, self.terms.var(number))
        for term in self.outputs:
            self._state(conditions, term)

    def _state(self, conditions: _Conditions, term: CoqTerm) -> None:
        if self.with_domain:
            self.steps += [ProgramLine(t, f) for f, t in conditions.missing(term)]

    def _state_positive(self, conditions: _Conditions) -> None:
        """States that inputs are positive, if they are declared so and a condition is about them."""
        arguments = [
            t for term in (*self.terms.lets, *self.outputs) for _, t in conditions.missing(term, False)
        ]
        used = {v.value for argument in arguments for v in _parts(argument) if v.head == "Var"}
        for number in self.positive:
            if number in used:
                variable = self.terms.var(number)
                conditions.state(("Log", variable))
                self.steps.append(ProgramLine(variable, "Log"))

    @property
    def needs(self) -> list[Need]:
        """The stated conditions."""
        return [(s.need, s.term) for s in self.steps if s.need]


def _parts(term: CoqTerm) -> list[CoqTerm]:
    """A term and everything in it, each once."""
    found: dict[CoqTerm, None] = {}
    stack = [term]
    while stack:
        current = stack.pop()
        if current not in found:
            found[current] = None
            stack.extend(current.args)
    return list(found)


Sign = tuple[bool, bool, bool]
"""Flags: known to be positive, not negative, not zero."""


UNKNOWN: Sign = (False, False, False)


class _Conditions:
    """The conditions stated so far, and the signs that follow, as ``sign_of`` computes them in Coq."""

    def __init__(self, terms: CoqTerms) -> None:
        self.terms = terms
        self.stated: set[Need] = set()
        self.signs: dict[CoqTerm, Sign] = {}

    def state(self, need: Need) -> None:
        self.stated.add(need)
        self.signs.clear()

    def named(self, term: CoqTerm, variable: CoqTerm) -> None:
        """Give the sign of a term to the variable that names it."""
        positive, _, nonzero = self.sign(term)
        if positive:
            self.stated.add(("Log", variable))
        if nonzero:
            self.stated.add(("Inv", variable))

    def missing(self, term: CoqTerm, state: bool = True) -> list[Need]:
        """The conditions of a term that do not follow from earlier ones; they count as stated from now on."""
        found = []
        for need in self._needs(term):
            if not self._covered(need):
                found.append(need)
                if state:
                    self.state(need)
        return list(dict.fromkeys(found))

    def _needs(self, term: CoqTerm) -> list[Need]:
        found: list[Need] = []
        for part in reversed(_parts(term)):
            if part.head == "Div":
                found.append(("Inv", part.args[1]))
            elif part.head == "App" and part.function in NONZERO | POSITIVE | STATED:
                kind = (
                    "Inv"
                    if part.function in NONZERO
                    else "Log"
                    if part.function in POSITIVE
                    else part.function
                )
                found.append((kind, part.args[0]))
            elif part.function == "Power":
                found.append(("Log", part.args[0]))
            elif part.function in {"Maximum", "Minimum", "Less"}:
                sides = part.args[::-1] if part.function == "Less" else part.args
                found.append(("Inv", self.terms.make("Sub", *sides)))
            elif part.function == "Xlogy":
                found.append(("Log", part.args[1]))
            elif part.function == "Hypot":
                make = self.terms.make
                squares = [make("Pow", a, value=2) for a in part.args]
                found.append(("Log", make("Add", *squares)))
        return found

    def _covered(self, need: Need) -> bool:
        kind, term = need
        positive, nonneg, nonzero = self.sign(term)
        known = {"Inv": nonzero, "Log": positive, "Log1p": nonneg}.get(kind, False)
        return known or need in self.stated

    def sign(self, term: CoqTerm) -> Sign:
        """The sign of a term, as far as it is known."""
        for part in postorder([term], lambda t: [a for a in t.args if a not in self.signs]):
            positive, nonneg, nonzero = self._sign_by_parts(part)
            positive = positive or ("Log", part) in self.stated or ("Sqrt", part) in self.stated
            nonzero = positive or nonzero or ("Inv", part) in self.stated
            self.signs[part] = positive, positive or nonneg, nonzero
        return self.signs[term]

    def _sign_by_parts(self, term: CoqTerm) -> Sign:
        if term.head == "Int":
            return term.value > 0, term.value >= 0, term.value != 0
        if term.head == "Pi" or term.function in ALWAYS_POSITIVE | {"Power"}:
            return True, True, True
        signs = [self.signs[a] for a in term.args]
        return _of_one(term, *signs) if len(signs) == 1 else _of_two(term, *signs) if signs else UNKNOWN


def _of_one(term: CoqTerm, sign: Sign) -> Sign:
    positive, nonnegative, nonzero = sign
    match term.head, term.function:
        case "Opp", _:
            return False, False, nonzero
        case "Pow", _:
            even = term.value % 2 == 0
            return positive or (even and nonzero), nonnegative or even, nonzero
        case "App", "Inv":
            return positive, False, nonzero
        case "App", "Sqrt":
            return positive, True, False
        case "App", "Abs":
            return nonzero, True, nonzero
    return UNKNOWN


def _of_two(term: CoqTerm, first: Sign, second: Sign) -> Sign:
    (p, n, z), (q, m, y) = first, second
    match term.head, term.function:
        case "Add", _:
            return (p and m) or (n and q), n and m, False
        case "Mul", _:
            return p and q, (n and m) or term.args[0] is term.args[1], z and y
        case "Div", _:
            return p and q, n and q, z and y
        case "App2", "Maximum":
            return p or q, n or m, False
        case "App2", "Less":
            return False, True, False
        case "App2", "Hypot":
            return z or y, True, False
    return UNKNOWN


# ---- whether all conditions of a domain hold at some point ---------------------------------------


MANY = 4096
"""Points tried for each choice of signs."""

HOLDS: dict[str, Callable[[Array], Array]] = {
    "Inv": lambda v: v != 0, "Log": lambda v: v > 0, "Log1p": lambda v: v > -1, "Acosh": lambda v: v > 1,
    "Tan": lambda v: np.cos(v) != 0, "Sec": lambda v: np.cos(v) != 0, "Csc": lambda v: np.sin(v) != 0,
    "Cot": lambda v: np.sin(v) != 0, **dict.fromkeys(["Asin", "Acos", "Atanh"], lambda v: np.abs(v) < 1),
}  # fmt: skip
"""The conditions that `enough` of SymadCertificates.v states, by the function that needs them."""

VALUES: dict[str, Callable[..., Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Opp": np.negative,
    "Inv": np.reciprocal, "Sqrt": np.sqrt, "Power": np.power, "Less": lambda a, b: np.less(a, b) * 1.0,
    "Heaviside": lambda v: np.heaviside(v, 0.5),
}  # fmt: skip


def is_somewhere(program: CoqProgram) -> bool:
    """Whether floats satisfy all conditions of a program at one of many random points."""
    rng, count = np.random.default_rng(0), program.terms.inputs
    for signs in ((-1, 1), (1,), (-1,)):
        sizes = np.exp2(rng.uniform(-6, 6, (count, MANY)) * rng.uniform(0, 1, MANY))
        if _hold(program, sizes * rng.choice(signs, sizes.shape)).any():
            return True
    return False


def _hold(program: CoqProgram, inputs: Array) -> Array:
    """Where all conditions hold; inputs are (elements, points)."""
    holds, variables = np.ones(inputs.shape[1], dtype=bool), list(inputs)
    known: dict[CoqTerm, Any] = {}
    with np.errstate(all="ignore"):
        for step in program.steps:
            for part in postorder([step.term], lambda t: [a for a in t.args if a not in known]):
                known[part] = _applied(part, [known[a] for a in part.args], variables)
            value = known[step.term]
            if step.need:
                holds &= HOLDS[step.need](value)
            else:
                variables.append(value)
    return holds


def _applied(term: CoqTerm, args: list[Any], variables: list[Array]) -> Any:
    match term.head:
        case "Var":
            return variables[term.value - 1]
        case "Int":
            return np.float64(float(term.value) if abs(term.value) < 2**1000 else np.inf)
        case "Pi":
            return np.float64(np.pi)
        case "Pow":
            return np.asarray(args[0], dtype=np.float64) ** float(term.value)
    name = term.function or term.head
    return VALUES[name](*args) if name in VALUES else numpy_function(NAMED[name])(*args)


NAMED: Mapping[str, Any] = {constructor: head for head, constructor in HEADS.items()}
