"""From graphs to programs: the order of statements, loops and their states, names by role.

Start with `schedule`: nodes become statements, each after those that it reads; recurrences and equations
have rules of their own. `plans` makes the programs of array code, `roles` chooses the names of values.
"""
