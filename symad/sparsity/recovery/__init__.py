"""Sparse derivatives from few products: seeds, compression, and recovery of the entries."""
