"""Identity tests modulo random primes, with a bound on the probability of a false answer.

`identity_testing` is the start. `prime_fields` and `primes` are the arithmetic, `residues` says what each op
does in it, `function_values` gives functions their random values, by `known_values` where they follow from
others, `runs` takes as many lanes as `error_bound` asks for, from the degrees of `degree_bounds`. `scouting`
looks for points where two graphs differ visibly.
"""
