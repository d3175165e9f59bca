"""Ops that stand for a larger formula, which is their definition: attention, softmax, sums over pairs."""
