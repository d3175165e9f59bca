"""Training on the device: `step` is one step of an optimiser, recorded as a CUDA graph.

`optimiser` launches the kernels that change all parameters at once; their text is gpu/kernels/optimiser.cu.
"""
