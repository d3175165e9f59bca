"""Functions of SymPy expressions that SymPy lacks, with their values, derivatives and stable forms.

Start with `scalar_functions`: sigmoid, softplus and their like. `special_functions`, `probability` and
`elliptic_*` have further functions of numbers, `matrix_functions` those of matrices; `held_forms` has
forms that stay as written.
"""
