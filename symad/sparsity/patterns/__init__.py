"""The entries of a derivative that may differ from zero: detection, rules of the ops.

Start with `pattern`: a boolean matrix in compressed rows. `detection` finds it on a linearized graph,
`rules` propagate it through each linear op, `dependence` and `structural_zeros` are the dependencies of
elements.
"""
