"""CUDA: the CuPy backend and the hand-written kernels. CuPy is imported on first use, not here."""

if __name__ != "symad.gpu":  # the checkout also shows this folder as a top-level package
    raise ImportError("import symad.gpu, not gpu: a second copy would register rules twice")
