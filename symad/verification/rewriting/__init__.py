"""Graphs rewritten in a small basis of functions; what is found here is checked elsewhere.

`rewrite` is the start: a graph in the basis. `basis` is what one rewriting knows, `vanishing` which nodes
may be 0 on an open set. `identities` has the rules by function, used only where `symad.verification.terms`
and `values` allow. `identity_testing` compares rewritten graphs in random fields; where that does not decide
a claim, `restated` says the claim in another form.
"""
