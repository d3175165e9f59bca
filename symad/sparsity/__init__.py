"""Sparse differentiation: a pattern, its coloring, compressed products, and the entries read from them.

Start with these four files: `patterns.pattern`, `coloring.coloring`, `recovery.compressed_products` and
`recovery.entries`.

`jacobian_sparsity` and `hessian_sparsity` find the pattern of a derivative. `color` groups the
columns or rows of a pattern so that few products determine all its entries; there is also a function
for each of the five kinds. `sparse_jacobian` and `sparse_hessian` combine all of this. Patterns are
scipy.sparse matrices, dense matrices or NetworkX graphs.
"""

from __future__ import annotations

from symad.sparsity.coloring.color import acyclic, bidirectional, color, column, row, star
from symad.sparsity.coloring.coloring import Coloring
from symad.sparsity.coloring.orders import ORDERS
from symad.sparsity.patterns.detection import hessian_sparsity, jacobian_sparsity
from symad.sparsity.patterns.pattern import ColoringError, Pattern, PatternError, as_pattern
from symad.sparsity.recovery.jacobian_hessian import sparse_hessian, sparse_jacobian

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
