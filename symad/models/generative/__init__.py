"""Generative models and kernels: autoencoders, VAE, GAN, diffusion, kernels, Gaussian processes.

Start with `vae`: a network, its loss and its samples. `kernels` and `named_kernels` are similarities of
points, and `gaussian_process` is what they predict; `divergences` and `measures` compare distributions and
samples.
"""
