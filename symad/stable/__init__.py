"""Stable forms: expressions that lose digits or overflow are replaced by equal ones that do not.

`stabilize` rewrites a graph before it is evaluated in floating point. `smooth` rewrites a graph before
differentiation: the derivative of log Σ exp(x) contains a softmax, that of its operands a quotient ∞/∞.

The tables are `secants` (differences and sums of functions), `products`, and the logarithms in
`exponentials`, written as `formulas`. `differences` is the engine of sums on the normal forms of
`normal_forms`, `removable` adds Taylor pieces, `selections` moves conditions outside of sums.
"""

from __future__ import annotations

from symad.stable.rules import smooth, stabilize

__all__ = ["smooth", "stabilize"]
