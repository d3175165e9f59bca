"""Printers for CuPy: the differences from NumPy, and the text of generated kernels.

`printing` has the writer of a module. `arrays`, `indices`, `products`, `random` and `sparse` print the ops
that CuPy writes differently (`symad.gpu.cupy_library` defines CuPy as an array library); `kernels`,
`row_kernels` and `recurrences` write CUDA.
"""
