"""Graphs rewritten in a small basis of functions; what is found here is checked elsewhere.

`rewrite` is the start: a graph in the basis. `basis` is what one rewriting knows. `identities` has the rules
by function; `facts` says where a rule may be used: signs, zeros, jumps, domains; `terms` takes nodes apart
into sums and products. Where the basis does not decide a claim, `restated` says the claim in another form.
"""
