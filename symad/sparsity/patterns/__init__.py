"""The entries of a derivative that may differ from zero: detection, rules of the ops, patterns from users.

Start with `pattern`: a boolean matrix in compressed rows. `detection` finds it on a linearized graph,
`rules` propagate it through each linear op, `dependence` and `structural_zeros` are the dependencies of
elements, `check_given_pattern` finds entries that a user's pattern misses.
"""
