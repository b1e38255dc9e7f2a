"""In noise of digits the rules that want a name are followed where one stands, and only there."""

from random import Random

import pytest

from gateway import shield as shields
from gateway.shield import Direction, Shield, crowds
from gateway.shield.edges import holds_name

NOISE = {"numbers": "0123456789 -.", "hexadecimal": "22334455667789abc "}


@pytest.fixture(scope="module")
def builtin() -> Shield:
    return shields.load()


@pytest.mark.parametrize(
    ("back", "is_one"),
    [
        ("(?:[^0-9]){0,28}(?:drac|cc)(?![a-z])", True),
        ("(?:[^0-9]){0,28}(?:aba|gnituor)", True),
        ("(?:[a-f]){2,4}", True),
        ("(?:卡|nss)", True),
        ("(?i:[C-D])[ ]e", False),
        ("(?:[a-z]){1,2}", False),
        ("(?:drac){0,1}", False),
        ("(?:c|drac)", False),
        ("c[ ]d", False),
        ("[^0-9]{0,9}", False),
        ("(?=drac)[0-9]", False),
    ],
)
def test_a_name_has_a_late_letter_or_two_in_a_row(back: str, is_one: bool) -> None:
    assert holds_name(back) == is_one


def test_far_from_names_is_told_as_from_the_whole_text() -> None:
    dice = Random(5)
    for _ in range(200):
        text = "".join(dice.choices("0000000000 -.ab", k=900)) + "cc" * dice.randrange(2) + "0" * 300 + "x" + "0" * 99
        whole = crowds.far_from_names(text, 0, len(text), is_beginning=True)
        begin = dice.randrange(1, len(text))
        assert crowds.far_from_names(text, begin, len(text), is_beginning=True) == whole[begin:]
        told = crowds.far_from_names(text, begin, len(text), is_beginning=False)
        # What stands before the text may be a name.
        assert told[max(0, 96 - begin) :] == whole[begin:][max(0, 96 - begin) :]
        assert not any(told[: max(0, 96 - begin)])


@pytest.mark.parametrize("kind", NOISE)
def test_numbers_are_found_in_a_crowd_as_without(builtin: Shield, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = Random(9)
    rules = [rule for rule in builtin.rules if rule.category in ("pii", "financial", "secret")]
    texts = []
    for rule in rules[::9]:
        before, behind = ("".join(dice.choices(NOISE[kind], k=900)) for _ in range(2))
        texts.append(f"{before} {rule.match[0]} {behind}")
    spans: list[tuple[int, int]] = []

    def far_from_names(part: str, begin: int, end: int, *, is_beginning: bool) -> bytearray:
        spans.append((begin, end))
        return told(part, begin, end, is_beginning=is_beginning)

    told = crowds.far_from_names
    monkeypatch.setattr(crowds, "far_from_names", far_from_names)
    seen = [builtin.scan(text, Direction.INBOUND) for text in texts]
    # In those that are ASCII.
    assert len(spans) * 2 > len(texts)
    monkeypatch.setattr(crowds, "MANY", len(max(texts, key=len)) * 99)
    assert seen == [builtin.scan(text, Direction.INBOUND) for text in texts]
