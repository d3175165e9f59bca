"""Graph passes of the CuPy backend, which run before code is printed.

`recognize_attention` finds attention in formulas, `fusion` makes kernels of elementwise chains and rows,
`recurrences` makes kernels of loops, and each other pass applies one identity.
"""
