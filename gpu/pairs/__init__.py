"""Sums over all pairs of rows on the device.

`printer` prints the calls and launches of the kernels, `kernel_text` the CUDA text of a pair function, also
for tensor cores, which are used where points have many components. `symad.gpu.eager` has
`symad.gpu.pairwise`.
"""
