"""Samples from densities: Markov chains, draws, expectations, and their diagnostics."""
