"""Samples from densities: Markov chains, draws, expectations, and their diagnostics.

Start with `markov_chains`: Metropolis, Langevin and Hamiltonian chains on a log-density. They return
`draws`, which know their `diagnostics`; `expectation` is plain Monte Carlo with its standard error.
"""
