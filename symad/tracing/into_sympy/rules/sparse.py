"""The SymPy forms of the ops of `symad.ops.sparse`."""

from __future__ import annotations

from symad.core.graph import Node
from symad.core.questions import Form, Forms, sympy_form
from symad.ops.sparse.csr import CompressedRows
from symad.ops.sparse.sparse_solve import SparseSolve


@sympy_form.dispatch
def compressed_rows_sympy(op: CompressedRows, y: Node, forms: Forms) -> Form:
    """SymPy has no sparse matrix with a given pattern: the op is wrapped."""
    return None


@sympy_form.dispatch
def sparse_solve_sympy(op: SparseSolve, y: Node, forms: Forms) -> Form:
    return None  # no SymPy class: the op is wrapped, so that tracing returns it
