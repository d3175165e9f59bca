"""Tiled attention on the device.

`eager` is what `symad.gpu.attention` calls: it lowers the op and calls the code. `plan` and `tile_shapes`
choose the kernels, `compiled_score` and `score_text` write the score in C, `printer` writes the calls, whose
functions stand in `module_text`.
"""
