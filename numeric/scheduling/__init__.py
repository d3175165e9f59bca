"""From graphs to programs: an order of statements, loops with their states, names by role.

Start with `schedule`; `loops` has the rule of recurrences, `roles` says what values are called.
"""
