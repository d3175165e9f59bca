"""Sparse derivatives from few products: seeds, products, and recovery of the entries, as graphs.

Start with `jacobian_hessian`: graphs whose value is a csr_array. `compressed_products` has the products of
all colors, `entries` what is gathered from them, or computed without seeds: as scalars, or by
`stencil_terms`. Entries that a user's pattern misses are found.
"""
