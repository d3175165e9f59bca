"""Examples of every op, on symbolic inputs: tests and tables ask each question of each op on them."""
