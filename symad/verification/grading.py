"""Answers to exercises, graded: `grade(f, x, gradient=answer)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from symad.core.signatures import Traceable, Wrt
from symad.errors import SymadError
from symad.verification.certificate.certificate import Certificate
from symad.verification.certificate.report import fault_text
from symad.verification.users import verify

VERDICTS = {
    "proved": "right, for all values",
    "tested": "right, up to a negligible probability",
    "measured": "right wherever it was tried",
    "undecided": "not decided",
    "refuted": "wrong",
}


@dataclass(frozen=True, repr=False)
class Grade:
    """The result of `grade`; prints as the verdict, with the entry at fault and what is wrong there."""

    certificate: Certificate | None
    problem: str = ""

    @property
    def right(self) -> bool:
        """True if the answer is proved, tested or measured."""
        return self.certificate is not None and self.certificate.status in ("proved", "tested", "measured")

    def __repr__(self) -> str:
        if self.certificate is None:
            return self.problem or "no answer yet"
        status = self.certificate.status
        verdict = f"{VERDICTS[status]} ({status})"
        fault = next((e for e in self.certificate.entries if e.status == status), None)
        return f"{verdict}\n{fault_text(fault)}" if fault and status in ("refuted", "undecided") else verdict


def grade(f: Traceable, wrt: Wrt | None = None, **answer: Any) -> Grade:
    """The verdict on an answer to an exercise.

    Args:
        f: the function, as `symad.verify` takes it.
        wrt: the inputs to differentiate by.
        answer: one of ``value=``, ``gradient=``, ``jacobian=``, ``hessian=``: a formula or a numeric
            function; None while there is no answer.

    Returns:
        The grade. An answer of the wrong shape or kind raises no error: the grade says what is wrong with it.
    """
    if any(candidate is None for candidate in answer.values()):
        return Grade(None)
    if any(isinstance(candidate, str) for candidate in answer.values()):
        return Grade(None, "not an answer: text; give a formula of the symbols, or a function")
    try:
        return Grade(verify(f, wrt, **answer))
    except SymadError as problem:
        return Grade(None, f"not an answer: {problem}")
