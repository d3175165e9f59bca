"""Stable forms: expressions that lose digits or overflow are replaced by equal ones that do not.

`stabilize` rewrites a graph before it is evaluated in floating point. `smooth` rewrites a graph before
differentiation: the derivative of log Σ exp(x) contains a softmax, that of its operands a quotient ∞/∞.
"""

from __future__ import annotations

from symad.stable.exponentials import smooth
from symad.stable.logistic import with_logistic
from symad.stable.rules import stabilize

__all__ = ["smooth", "stabilize", "with_logistic"]
