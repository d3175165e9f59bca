"""Evaluation at points: in floats, with fifty digits, in balls; users' code called and measured.

`measure` is the start, for numeric functions (`programs` calls them). `fifty_digits` and `balls` give the
exact values, `hostile_points` and `points` the places, `references` derivatives from elsewhere,
`user_rules` the derivative rules that users gave.
"""
