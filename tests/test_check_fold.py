"""check_fold: it names the law that a fold breaks, and answers what it cannot check."""

import pytest

from skewless import folds
from skewless.errors import SkewlessError
from tests.test_folds import Calls, Spread


class LastSeen(Spread):
    name = "last"

    def merge(self, a, b):
        return [0, b[-1]] if b else a


class WrongZero(Spread):
    name = "wrong zero"

    def zero(self):
        return 1.0

    def reduce(self, state, x):
        return state + sum(x.to_pylist())

    def merge(self, a, b):
        return a + b

    def finish(self, state):
        return state


class Halving(Spread):
    name = "halving"

    def zero(self):
        return None

    def reduce(self, state, x):
        return float(sum(x.to_pylist()))

    def merge(self, a, b):
        if a is None or b is None:
            return b if a is None else a
        return (a + b) / 2

    def finish(self, state):
        return state


@pytest.mark.parametrize(
    ("fold", "law"),
    [
        (LastSeen(), "commutativity"),
        (WrongZero(), "identity"),
        (Halving(), "associativity"),
        (Calls(), "agreement of reduce and merge"),
    ],
)
def test_the_checker_names_the_law_that_a_fold_breaks(fold, law):
    with pytest.raises(SkewlessError, match=f"'{fold.name}' breaks {law}:"):
        folds.check_fold(fold, {"x": [1.0, 7.0, 3.0, 12.0, 5.0]})


class Mistyped(Spread):
    def finish(self, state):
        return "wide"


@pytest.mark.parametrize(
    ("fold", "sample", "sentence"),
    [
        ("spread", {"x": [1.0, 2.0, 3.0]}, "check_fold takes a fold, .*, not 'spread'"),
        (Spread(), {"x": 5}, "A sample has a list of values of one type for each column"),
        (Spread(), {"x": [1.0, "a", 2.0]}, "A sample has a list of values of one type for each"),
        (Spread(), {"x": ["a", "\ud800", "b"]}, "A sample has a list of values of one type for"),
        (Spread(), {"y": [1, 2, 3]}, "There is no column of the sample called 'x'"),
        (Spread(), {"x": [1.0]}, "at least 3 messages"),
        (Spread(), {}, "There is no column of the sample called 'x'. Valid: none."),
        (Mistyped(), {"x": [1.0, 2.0, 3.0]}, "its results are of type double, and its `finish` ga"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(fold, sample, sentence):
    with pytest.raises(SkewlessError, match=sentence):
        folds.check_fold(fold, sample)
