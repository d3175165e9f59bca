"""Loops whose steps are compiled kernels: which loops, and how they are called."""
