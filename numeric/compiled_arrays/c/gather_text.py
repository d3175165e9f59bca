"""The entries of a sparse matrix, gathered in C from an array of its parts, with 32-bit positions."""

from __future__ import annotations

from symad.numeric.compiled_arrays.c.drivers import MIN_PARALLEL
from symad.numeric.compiler.c_templates import filled

SIGNATURE = "(n),(m)->(m)"

TEXT = f"""void ${{name}}(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *data) {{
  const $real *restrict values = (const $real *)args[0];
  const int *restrict places = (const int *)args[1];
  $real *restrict entries = ($real *)args[2];
  const ptrdiff_t size = dimensions[2];
  (void)steps;
  (void)data;
#pragma omp parallel for simd schedule(static) if (size >= {MIN_PARALLEL})
  for (ptrdiff_t i = 0; i < size; i++) entries[i] = values[places[i]];
}}
"""
"""One gather. The module itself makes the arrays, so they are contiguous and do not overlap."""


def gather_source(name: str, real: str) -> str:
    """The kernel entries[i] = values[index[i]]."""
    return filled(TEXT, {"real": real, "name": name}.__getitem__)
