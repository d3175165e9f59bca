"""What is known of nodes by their form: sums and products, numbers, signs, jumps, domains.

`linear_terms` is the start: a node as a sum of rational multiples. `factoring` and `rational_forms` are
products and quotients of these, `common_units` and `rounded_constants` their coefficients. `signs` knows
which nodes are positive everywhere, `discontinuities` which values jump, `positive_domains` what must be
positive wherever a claim says something.
"""
