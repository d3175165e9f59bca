"""Identities of functions by their heads: each writes a value in terms of others where that holds.

`functions` is the start: the table of rules and the elementary ones. `special` and `elliptic` add to the
table. `elementary` has the rules of exponentials, logarithms, rational powers, sines and signs that the
others use; `powers` those of exponents that are no numbers; `extremes` and `infinities`
those of choices and masks.
"""
