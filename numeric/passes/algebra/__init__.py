"""Graph passes that use identities: contractions in the best order, factors, masks, shared products."""
