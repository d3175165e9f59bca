"""Stable forms: expressions that lose digits or overflow are replaced by equal ones that do not.

`stabilize` rewrites a graph before it is evaluated in floating point. `smooth` rewrites a graph before
differentiation: the derivative of log Σ exp(x) contains a softmax, that of its operands a quotient ∞/∞.

The tables are `rows` (of one argument) and `secants` (differences of a function), in one notation that `rows`
defines. Engines apply them: `differences` with `steps` to sums, `products` to products, and `exponentials` to
logarithms and quotients; `normal_forms` finds equal terms. `removable` adds Taylor pieces by
`series_variables`, `overflows` keeps products in range, `selections` moves conditions outside of sums.
"""

from __future__ import annotations

from symad.stable.rules import smooth, stabilize

__all__ = ["smooth", "stabilize"]
