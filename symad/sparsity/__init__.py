"""Sparse differentiation: patterns, their detection, colorings, compression and recovery.

`jacobian_sparsity` and `hessian_sparsity` find the pattern of a derivative. `color` groups the
columns or rows of a pattern so that few products determine all its entries; the five kinds are also
functions of their own. `sparse_jacobian` and `sparse_hessian` put it all together. Patterns are
scipy.sparse matrices, dense matrices or NetworkX graphs.
"""

from __future__ import annotations

from symad.sparsity.coloring import Coloring
from symad.sparsity.derivatives import sparse_hessian, sparse_jacobian
from symad.sparsity.detection import hessian_sparsity, jacobian_sparsity
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
    "hessian_sparsity",
    "jacobian_sparsity",
    "row",
    "sparse_hessian",
    "sparse_jacobian",
    "star",
]
