"""Evaluation at points: in floats, with fifty digits, in balls; users' code called and measured."""
