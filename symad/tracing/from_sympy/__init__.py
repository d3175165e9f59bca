"""SymPy expressions as nodes: scalars, matrices, arrays, indexed sums.

`scalars` is the start: rules by SymPy class, registered for `symad.tracing.walk.lift`. `matrices`,
`matrix_parts` and `arrays` are those of matrix and array expressions, `index_sums`, `bound_indices` and
what begins with index those of Sum over Indexed; `partials` has the derivatives of functions,
`inside_functions` expressions met in traced functions.
"""
