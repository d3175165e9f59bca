"""Arithmetic modulo primes, in which the identity tests evaluate graphs.

Start with `prime_fields`: numbers modulo the primes of `primes`, and with square roots. `integer_inputs`
are inputs that take whole numbers only.
"""
