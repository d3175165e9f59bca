"""From graphs to programs: the order of statements, loops and their states, names by role.

Start with `schedule`. `loops` has the rules of recurrences, and `roles` chooses the names of values.
"""
