"""Small linear systems in compiled loops: elimination with partial pivoting, as LAPACK's, without its call.

A solve by NumPy takes 4 µs in a loop, of which the arithmetic of three unknowns is 0.03.
"""

from __future__ import annotations

from symad.core.graph import Node
from symad.ops.linalg.solve_det import Solve

MAX_UNKNOWNS = 16
"""A system with at most this many unknowns and right-hand sides is written as elimination in C.

Origin: with 16 unknowns a step of a loop takes 1.3 µs in C, and 5.4 µs by a call of LAPACK.
"""

SINGULAR = 2
"""What a loop returns after a step whose matrix has a pivot that is 0; 1 is for lack of memory."""

ELIMINATION = """\
#ifndef SYMAD_SOLVE
#define SYMAD_SOLVE
/* X of A X = B in the place of B (n, k), row by row; A (n, n) is overwritten. 1 if a pivot is 0. */
static int symad_solve(int n, int k, $real *a, $real *b)
{
  for (int c = 0; c < n; c++) {
    int p = c;
    for (int i = c + 1; i < n; i++)
      if (fabs(a[i*n + c]) > fabs(a[p*n + c])) p = i;
    if (a[p*n + c] == 0) return 1;
    if (p != c) {
      for (int j = c; j < n; j++) { const $real t = a[c*n + j]; a[c*n + j] = a[p*n + j]; a[p*n + j] = t; }
      for (int j = 0; j < k; j++) { const $real t = b[c*k + j]; b[c*k + j] = b[p*k + j]; b[p*k + j] = t; }
    }
    for (int i = c + 1; i < n; i++) {
      const $real f = a[i*n + c]/a[c*n + c];
      for (int j = c + 1; j < n; j++) a[i*n + j] -= f*a[c*n + j];
      for (int j = 0; j < k; j++) b[i*k + j] -= f*b[c*k + j];
    }
  }
  for (int i = n - 1; i >= 0; i--)
    for (int j = 0; j < k; j++) {
      for (int c = i + 1; c < n; c++) b[i*k + j] -= a[i*n + c]*b[c*k + j];
      b[i*k + j] /= a[i*n + i];
    }
  return 0;
}
#endif
"""
"""The function; ``$real`` is the type of all numbers."""


def is_small_system(node: Node) -> bool:
    """Whether a node is one system that is written in C."""
    return isinstance(node.op, Solve) and len(node.shape) == 2 and all(d <= MAX_UNKNOWNS for d in node.shape)
