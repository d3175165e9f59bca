"""Tiled attention on the device.

`eager` is what `symad.gpu.attention` calls: `arguments` reads what was given, `plan` and `tile_shapes` choose
the kernel, `module_text` writes it around the files of gpu/kernels, `launch` runs it; `printer` writes the
calls of lowered code. `eager_second` has the products with second derivatives.
"""
