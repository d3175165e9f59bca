"""Sparse differentiation: patterns, colorings, compression and recovery.

`color` groups the columns or rows of a sparsity pattern so that few products with a matrix
determine all its entries; the five kinds are also functions of their own. Patterns are scipy.sparse
matrices, dense matrices or NetworkX graphs.
"""

from __future__ import annotations

from symad.sparsity.coloring import Coloring
from symad.sparsity.errors import ColoringError, PatternError
from symad.sparsity.kinds import acyclic, bidirectional, color, column, row, star
from symad.sparsity.orders import ORDERS
from symad.sparsity.pattern import Pattern, as_pattern

__all__ = [
    "ORDERS",
    "Coloring",
    "ColoringError",
    "Pattern",
    "PatternError",
    "acyclic",
    "as_pattern",
    "bidirectional",
    "color",
    "column",
    "row",
    "star",
]
