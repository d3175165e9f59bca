"""Graph passes that use identities: contractions in the best order, factors, shared products.

`definitions` runs first: it replaces ops that a target cannot print by their definitions. `networks` plans
products, `factors`, `unit_seeds`, `syrk_products` and `block_matrices` simplify them, and `merging` shares
work.
"""
