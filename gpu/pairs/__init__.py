"""Sums over all pairs of rows on the device.

Start with `eager`, which is `symad.gpu.pairwise`. `printer` prints the calls and launches of the kernels,
`kernel_text` the CUDA text of a pair function; `products` uses tensor cores where points have many
components.
"""
