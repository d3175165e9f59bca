"""Identities of functions, used where the region implies them; found by search, checked elsewhere."""
