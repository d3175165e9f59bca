"""Printers for CuPy: what differs from NumPy, and the text of generated kernels.

`library` is the start: CuPy as an array library of the printers. `arrays`, `indices`, `joining`,
`products`, `random` and `sparse` are ops that CuPy writes differently; `kernels`, `rows`, `row_groups` and
`recurrences` write CUDA.
"""
