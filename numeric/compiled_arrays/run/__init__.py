"""Loops whose steps are compiled kernels: which loops are compiled, and how they are called."""
