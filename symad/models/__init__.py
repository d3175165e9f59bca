"""Models, one a file, each as SymPy mathematics: what it computes, its loss, its parameters.

A model's functions return SymPy expressions in symbols whose sizes may be symbols too; `symad.trace`,
`symad.gradient`, `symad.check` and `symad.numeric.lower` take them as they are.
"""

from __future__ import annotations

from symad.models import ar, feedforward, linear_unit, lstm, maximum, regression, rnn

__all__ = ["ar", "feedforward", "linear_unit", "lstm", "maximum", "regression", "rnn"]
