"""Identity tests modulo random primes, with a bound on the probability of a false answer."""
