"""Stable forms: what loses digits or overflows is replaced by what is equal and does not.

`stabilize` rewrites a graph before it is evaluated in floating point. `smooth` rewrites what is
differentiated: the derivative of log Σ exp(x) holds a softmax, that of its parts a quotient ∞/∞.
"""

from __future__ import annotations

from symad.stable.exponentials import smooth
from symad.stable.logistic import with_logistic
from symad.stable.rules import stabilize

__all__ = ["smooth", "stabilize", "with_logistic"]
