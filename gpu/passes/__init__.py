"""Graph passes of the CuPy backend: what is joined, recognised or written out before code is printed.

`kernels_or_definitions` is the start: fused ops without a kernel become their definitions.
`recognise_attention` finds attention in formulas, `fusion` makes kernels of elementwise chains and rows,
`recurrences` of loops; the others are one identity each.
"""
