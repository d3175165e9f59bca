"""Printers for CuPy: the differences from NumPy, and the text of generated kernels.

`printing` has the writer of a module.
`arrays`, `indices`, `joining`, `products`, `random` and `sparse` print the ops that CuPy writes differently
(`symad.gpu.cupy_library` defines CuPy as an array library); `kernels`, `rows`, `row_groups` and
`recurrences` write CUDA.
"""
