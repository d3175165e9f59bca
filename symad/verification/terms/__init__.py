"""What is known of nodes by their form: sums and products, numbers, signs, jumps.

`linear_terms` is the start: a node as a sum of rational multiples, or as a product of rational powers.
`rounded_constants` knows the numbers that floats stand for. `signs` knows which nodes are positive
everywhere, `discontinuities` which values jump.
"""
