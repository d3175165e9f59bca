"""Sums over all pairs of rows on the device: `eager` is `symad.gpu.pairwise`, `kernel_text` the CUDA text."""
