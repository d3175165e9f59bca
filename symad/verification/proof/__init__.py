"""Proofs for the checker, and normal forms in index notation for all sizes.

`find_proof` and `find_isomorphism` write down the steps that the checker replays, and `with_proofs` puts them
into a certificate. `all_sizes` is the start for symbolic dimensions (`index_notation`, `index_networks`).
"""
