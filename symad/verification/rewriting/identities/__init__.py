"""Identities of functions by their heads: each writes a value in terms of others where that holds.

`functions` is the start: the table of rules and the elementary ones. `special` adds to the table.
`elementary` has the rules of exponentials, logarithms, rational powers, sines and signs that the others
use; `powers` those of exponents that are no numbers, `infinities` those of masks.
"""
