"""Whether all conditions of a domain hold at some point: if at none, a theorem says nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symad.numbers.function_values import numpy_function
from symad.verification.coq.heads import HEADS
from symad.verification.coq.programs import CoqProgram
from symad.verification.coq.terms import CoqTerm, postorder
from symad.verification.fields.prime_fields import Array

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
