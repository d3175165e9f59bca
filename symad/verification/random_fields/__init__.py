"""Identity tests modulo random primes, with a bound on the probability of a false answer.

`runs` is the start: it takes as many lanes as `error_bound` asks for, from the degrees of `degree_bounds`.
`residues` says what each op does in a field of `symad.verification.fields`, `function_values` gives functions
their random values, by `known_values` where they follow from others.
"""
