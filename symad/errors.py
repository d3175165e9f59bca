"""The errors of symad. Each message says what was requested, what was given, and what to do."""

from __future__ import annotations


class SymadError(Exception):
    """Base of all errors raised on purpose by symad."""


class ShapeError(SymadError, ValueError):
    """Shapes or dimensions do not fit together."""


class TraceError(SymadError, TypeError):
    """Something that cannot become a graph was given to ``trace``."""


class OutsideError(TraceError):
    """An expression that is not a function of real numbers: complex, random, infinite or unevaluated."""


class DerivativeError(SymadError, ValueError):
    """A derivative was requested that does not exist or is not known."""


class EvaluationError(SymadError, TypeError):
    """A graph was called with values it cannot be evaluated on."""


class LoweringError(SymadError, ValueError):
    """An op has no form in the requested backend."""


class SavingError(SymadError, ValueError):
    """A graph cannot be saved, or a file holds no graph that can be loaded."""


def told(error: BaseException) -> str:
    """An error in one line: its type and its message."""
    return f"{type(error).__name__}: {error}"
