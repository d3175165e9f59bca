"""A minimal parser of LaTeX formulas, which evaluates them at a point."""

import math
import re

TOKENS = re.compile(r"\\(?:left|right|operatorname)|\\[a-zA-Z]+|\d+\.?\d*|[a-zA-Z]|[-+^{}()|,_]")
FUNCTIONS = {
    r"\sin": math.sin, r"\cos": math.cos, r"\tan": math.tan, r"\log": math.log, r"\cosh": math.cosh,
    r"\tanh": math.tanh, r"\sinh": math.sinh, r"\operatorname{atan}_{2}": math.atan2,
    r"\operatorname{sech}": lambda v: 1 / math.cosh(v),
    r"\sigma": lambda v: 1 / (1 + math.exp(-v)), r"\max": max,
}  # fmt: skip


class Reader:
    """A recursive descent parser of sums of products of powers."""

    def __init__(self, text, values):
        text = text.replace(r"\operatorname{atan}_{2}", r"\atanii").replace(r"\operatorname{sech}", r"\sech")
        self.tokens = [t for t in TOKENS.findall(text) if t not in (r"\left", r"\right")]
        self.values = values
        self.place = 0
        self.functions = FUNCTIONS | {r"\atanii": math.atan2, r"\sech": FUNCTIONS[r"\operatorname{sech}"]}

    @property
    def next(self):
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.next
        assert wanted is None or token == wanted, (token, wanted, self.tokens)
        self.place += 1
        return token

    def whole(self):
        value = self.sum()
        assert not self.next, self.tokens[self.place :]
        return value

    def sum(self):
        sign = -1 if self.next == "-" and self.take() else 1
        value = sign * self.product()
        while self.next in ("+", "-"):
            value += self.product() if self.take() == "+" else -self.product()
        return value

    def product(self):
        value = self.power()
        while self.next and self.next not in ("+", "-", ")", "}", ",", r"\rvert"):
            value *= self.power()
        return value

    def power(self):
        if self.next in self.functions:
            return self.call()
        base = self.atom()
        if self.next == "^":
            self.take()
            base = base ** self.braced()
        return base

    def call(self):
        function = self.functions[self.take()]
        exponent = 1
        if self.next == "^":
            self.take()
            exponent = self.braced()
        outer = self.next == "{" and self.take()
        self.take("(")
        args = [self.sum()]
        while self.next == ",":
            self.take()
            args.append(self.sum())
        self.take(")")
        if outer:
            self.take("}")
        if self.next == "^":
            self.take()
            exponent = self.braced()
        return function(*args) ** exponent

    def braced(self):
        self.take("{")
        value = self.sum()
        self.take("}")
        return value

    def atom(self):
        token = self.take()
        if token == "(":
            value = self.sum()
            self.take(")")
            return value
        if token == "{":
            value = self.sum()
            self.take("}")
            return value
        if token == r"\lvert":
            value = abs(self.sum())
            self.take(r"\rvert")
            return value
        if token == r"\frac":
            return self.braced() / self.braced()
        if token == r"\sqrt":
            return math.sqrt(self.braced())
        if token == r"\pi":
            return math.pi
        return float(token) if token[0].isdigit() else self.values[token]


def value_of(text, **values):
    """The value of a formula."""
    return Reader(text, {"e": math.e, **values}).whole()
