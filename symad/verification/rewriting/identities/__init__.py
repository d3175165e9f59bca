"""Identities of functions by their heads: each writes a value in terms of others where that holds.

Start with `functions`: the table of rules and the elementary ones. `special` and `elliptic` add to the table.
"""
