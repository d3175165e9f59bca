"""Printers for CuPy: the differences from NumPy, and the text of generated kernels.

`library` defines CuPy as an array library. `arrays`, `indices`, `joining`, `products`, `random` and `sparse`
print the ops that CuPy writes differently; `kernels`, `rows`, `row_groups` and `recurrences` write CUDA.
"""
