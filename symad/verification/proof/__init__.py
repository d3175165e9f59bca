"""Exact normal forms: rational functions over independent generators, and index notation for all sizes.

`normal_form` is the start for graphs of numbers (`rational_functions` is its arithmetic), `all_sizes` for
symbolic dimensions (`index_notation`, `index_networks`). `find_proof` writes down the steps that the
checker replays, and `with_proofs` puts them into a certificate.
"""
