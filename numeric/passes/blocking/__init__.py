"""Graph passes that cut work into blocks that stay in the cache: rows, batches, causal triangles."""
