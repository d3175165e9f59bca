"""Finders of proofs: they write down the steps that the checker replays.

`find_proof`, `find_isomorphism` and `node_proofs` find steps, and `with_proofs` puts them into a certificate.
"""
