"""Sparse derivatives from few products: seeds, products, and recovery of the entries, as graphs.

Start with `jacobian_hessian`: graphs whose value is a csr_array. `colored_products` has the products of all
colors, `seedless` and `stencil_terms` entries without seeds. Entries that a user's pattern misses are found.
"""
