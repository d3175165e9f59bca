"""Which entries of a derivative may differ from zero: detection, rules of the ops, patterns from users.

`pattern` is the start: a boolean matrix in compressed rows. `detection` finds it on a linearized graph,
`rules` says what each linear op passes on, `dependence` and `structural_zeros` what elements depend on,
`check_given_pattern` what a user's pattern misses.
"""
