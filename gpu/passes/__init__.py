"""Graph passes of the CuPy backend, which run before code is printed.

`kernels_or_definitions` comes first: it replaces fused ops without a kernel by their definitions.
`recognise_attention` finds attention in formulas, `fusion` makes kernels of elementwise chains and rows,
`recurrences` makes kernels of loops, and each other pass applies one identity.
"""
