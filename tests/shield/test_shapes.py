"""What is told of a whole text at once is what its characters say one by one."""

import random

from gateway.shield.patterns import LEAST_VALUE_CHARS, is_value_char
from gateway.shield.shapes import Shapes


def test_digits_and_long_values_are_told_wherever_they_stand() -> None:
    dice = random.Random(4)
    for _ in range(400):
        size = dice.choice((0, 5, 40, 400, 16_376, 16_414))
        text = "".join(dice.choices("abcdefgh  ,é字", k=size))
        place = dice.randrange(size + 1)
        value = "".join(dice.choices("aZ:~%.", k=dice.randrange(LEAST_VALUE_CHARS - 3, LEAST_VALUE_CHARS + 3)))
        text = text[:place] + dice.choice(("", "7", value)) + text[place:]
        shapes = Shapes(text)
        kinds = "".join("v" if is_value_char(char) else " " for char in text)
        assert shapes.has_values == ("v" * LEAST_VALUE_CHARS in kinds), text
        assert shapes.has_digits or not any("0" <= char <= "9" for char in text), text
