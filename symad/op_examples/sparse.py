"""Examples of the ops of `symad.ops.sparse`, for tests and tables."""

from __future__ import annotations

import numpy as np
import sympy

from symad.core.graph import Node
from symad.core.questions import examples
from symad.ops.basic.arithmetic import add
from symad.ops.basic.sources import array_constant, input_node
from symad.ops.sparse.csr import INDEX
from symad.ops.sparse.sparse_solve import SparseSolve


@examples(SparseSolve)
def sparse_solve_examples() -> list[Node]:
    """A tridiagonal system with a heavy diagonal, and its transpose."""
    indptr, indices = np.array([0, 2, 5, 7]), np.array([0, 1, 0, 1, 2, 1, 2])
    e = input_node(sympy.IndexedBase("e", shape=(7,)), (7,))
    b = input_node(sympy.IndexedBase("b", shape=(3,)), (3,))
    heavy = add(e, array_constant(np.array([4.0, 0, 0, 4.0, 0, 0, 4.0])))
    pattern = indptr.astype(INDEX).tobytes(), indices.astype(INDEX).tobytes()
    return [Node.of(SparseSolve(*pattern, flag), (heavy, b)) for flag in (False, True)]
