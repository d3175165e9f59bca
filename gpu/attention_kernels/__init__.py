"""Tiled attention on the device.

`symad.gpu.attention`, in `symad.gpu.eager`, lowers the op and calls the code. `plan` and `tile_shapes` choose
the kernels, `compiled_score` and `score_text` write the score in C, and `printer` writes the calls of the
functions in `symad.gpu.module_text`.
"""
