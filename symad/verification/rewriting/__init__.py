"""Identities of functions, used where the region implies them; found by search, checked elsewhere.

`rewrite` is the start: a graph in a small basis. `basis` is what one rewriting knows, `identities`
and `elementary` are the rules by function; `signs`, `vanishing`, `positive_domains` and `discontinuities`
say where a rule may be used.
"""
