"""Generative models and kernels: autoencoders, VAE, GAN, diffusion, kernels, Gaussian processes."""
