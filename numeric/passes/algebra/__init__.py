"""Graph passes that use identities: contractions in the best order, factors, masks, shared products.

`definitions` and `written_out` are the start: what has no form in a target becomes what it stands for.
`networks` and `contraction_order` plan products, `factors`, `unit_seeds`, `syrk_products` and
`add_diagonal` simplify them; `expand` and `merging` share work.
"""
