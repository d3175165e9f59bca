"""Graph passes over recurrences: what leaves the loop, what enters it, how its state is laid out."""
