"""From graphs to programs: the order of statements, loops and their states, names by role.

Start with `schedule`: nodes become statements, each after those that it reads. `loops` has the rules of
recurrences and `roots` those of equations; `blocks` are groups of nodes with the program of each; `roles`
chooses the names of values.
"""
