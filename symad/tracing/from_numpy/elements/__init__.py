"""Elements of traced values: read, chosen by conditions, assigned to, and slices that share them."""
