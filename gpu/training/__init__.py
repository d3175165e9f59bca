"""Training on the device: `step` is one step of an optimizer, recorded as a CUDA graph.

`optimizer` launches the kernels that change all parameters at once; their text is gpu/kernels/optimizer.cu.
"""
