"""What is known of nodes by their form: sums and products, numbers, signs, jumps.

`linear_terms` is the start: a node as a sum of rational multiples. `factoring` finds products of these,
`common_units` and `rounded_constants` their coefficients. `signs` knows which nodes are positive everywhere,
`discontinuities` which values jump.
"""
