"""SymPy expressions as nodes: scalars, matrices, arrays, indexed sums.

Start with `scalars`: rules by SymPy class, registered for `symad.tracing.walk.lift`. `matrices`,
`matrix_parts` and `arrays` have those of matrix and array expressions, `index_sums`, `bound_indices` and
the files that begin with index those of Sum over Indexed; `partials` has the derivatives of functions,
`inside_functions` expressions that occur in traced functions.
"""
