"""Graph passes that use identities: contractions in the best order, factors, masks, shared products.

`definitions` runs first: it replaces ops that a target cannot print by their definitions.
`networks` and `contraction_order` plan products, `factors`, `unit_seeds`, `syrk_products`, `add_diagonal`
and `block_matrices` simplify them, and `expand` and `merging` share work.
"""
