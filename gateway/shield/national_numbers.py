"""Numbers of people and firms whose check digits need a function or belong to one of many countries. Pure.

The algorithms are the issuing offices', as collected in the python-stdnum documentation, where no source is named.
"""

import re
from collections.abc import Callable, Mapping

from gateway.shield.check_digits import (
    CHECKS,
    DIGITS,
    Check,
    digits_of,
    luhn_holds,
    mod11_10,
    number_of,
    verhoeff,
    weights,
)

# Numbers of firms: country, form, checks as in a rule. A country may have several.
_FIRMS = r"""
AT \d{8} vat-at
BE [01]\d{9} weights:97/10000000 1000000 100000 10000 1000 100 10 1 10 1
BG \d{9} two-rounds:1 2 3 4 5 6 7 8/3 4 5 6 7 8 9 10
BG \d{10} weights:11/2 4 8 5 10 9 7 3 6/01234567890+date:ymd/0/20 40
BG \d{10} weights:11/-4 -3 -2 -7 -6 -5 -4 -3 -2/01234567890
CH \d{9} weights:11/5 4 3 2 7 6 5 4 1
CY \d{8}[A-Z] vat-cy
CZ [0-8]\d{7} weights:11/-8 -7 -6 -5 -4 -3 -2/11234567890
CZ \d{10} weights:11/10 1 10 1 10 1 10 1 10 1+date:ymd/0/20 50 70
DE [1-9]\d{8} mod11-10
DK \d{8} weights:11/2 7 6 5 4 3 2 1
EE \d{9} weights:10/3 7 1 3 7 1 3 7 1
EL \d{9} weights:11/256 128 64 32 16 8 4 2/01234567890
ES [XYZ\d]\d{7}[A-Z] letter:-1/TRWAGMYFPDXBNJZSQVHLCKE
ES [ABCDEFGHJNPQRSUVW]\d{7}[\dA-J] es-cif
FI \d{8} weights:11/7 9 10 5 8 4 2 1
FR [\dA-Z]{2}\d{9} luhn:-9
GB \d{9} weights:97=0 42 55/8 7 6 5 4 3 2 10 1
GR \d{9} weights:11/256 128 64 32 16 8 4 2/01234567890
HR \d{11} mod11-10
HU \d{8}(?:\d{3})? weights:10/9 7 3 1 9 7 3 1
IE \d{7}[A-W][A-Z]? ie-pps
IT \d{11} luhn
LT \d{9} two-rounds:1 2 3 4 5 6 7 8/3 4 5 6 7 8 9 1
LT \d{12} two-rounds:1 2 3 4 5 6 7 8 9 1 2/3 4 5 6 7 8 9 1 2 3 4
LU \d{8} weights:89/100000 10000 1000 100 10 1 -10 -1
LV \d{11} weights:11=3/9 1 4 8 3 10 2 5 7 6 1
MT \d{8} weights:37/3 4 6 7 8 9 10 1
NL \d{9}B\d\d varied
NO \d{9} weights:11/3 2 7 6 5 4 3 2 1
PL \d{10} weights:11/6 5 7 2 3 4 5 6 7/0123456789
PT \d{9} weights:11/-9 -8 -7 -6 -5 -4 -3 -2/01234567890
RO \d{4,10} weights:11/-7 -5 -3 -2 -1 -7 -5 -3 -2/01234567890
SE \d{10}01 luhn:10
SI \d{8} weights:11/-8 -7 -6 -5 -4 -3 -2/01234567890
SK [1-9]\d{9} weights:11/10 1 10 1 10 1 10 1 10 1
BR \d{14} weights:11/-6 -5 -4 -3 -2 -9 -8 -7 -6 -5 -4 -3 -2/01234567890
CA \d{9,10} luhn
JP \d{13} weights:9/1 2 1 2 1 2 1 2 1 2 1 2 1
RU \d{10} weights:11/2 4 10 3 5 9 4 6 8/01234567890
RU \d{13} weights:11/10 1 10 1 10 1 10 1 10 1 10 1/01234567890
UA \d{8} weights:11/1 2 3 4 5 6 7/0123456789
"""
_PEOPLE = r"""
HU \d{10} weights:11/1 2 3 4 5 6 7 8 9/0123456789
MX \d{11} luhn
PT \d{11} weights:10/29 23 19 17 13 11 7 5 3 2/9876543210
PT \d{9}[A-Z]{2}\d pt-card
"""
_ODD_PLACES = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def german_tax(number: str) -> bool:
    """ISO 7064 mod 11,10; of the first ten digits one or two stand twice or thrice."""
    return mod11_10(number, "") and len(set(number[:10])) in (8, 9)


def french_person(number: str) -> bool:
    """97 less the remainder of 13 places; 2A and 2B of Corsica stand for 19 and 18 (INSEE)."""
    return 97 - int(number[:13].replace("2A", "19").replace("2B", "18")) % 97 == int(number[13:])


def irish_person(number: str) -> bool:
    """Weights 8 to 2, and 9 for a second letter, by 23; W counts as nought."""
    return weights(number.ljust(9, "W"), "23/8 7 6 5 4 3 2 -1 9//WABCDEFGHIJKLMNOPQRSTUV")


def italian_person(number: str) -> bool:
    """Even places count as they are, odd ones by a table (decree of 12 March 1974)."""
    worths = [int(char) if char in DIGITS else ord(char) - 65 for char in number[:15]]
    total = sum(worth if place % 2 else _ODD_PLACES[worth] for place, worth in enumerate(worths))
    return chr(65 + total % 26) == number[15]


def spanish_insured(number: str) -> bool:
    """Province and serial as one number, its remainder by 97; a serial of eight digits has no nought before it."""
    joined = number[:2] + (number[3:-2] if number[2] == "0" else number[2:-2])
    return int(joined) % 97 == int(number[-2:])


def spanish_firm(number: str) -> bool:
    """Luhn over seven digits, written as a digit or as its letter."""
    return luhn_holds(number[1:8] + number[8].translate(str.maketrans("JABCDEFGHI", DIGITS)))


def luxembourgish_person(number: str) -> bool:
    """Luhn over twelve places, then Verhoeff over the first eleven and the last."""
    return luhn_holds(number[:12]) and verhoeff(number[:11] + number[12], "")


def russian_insured(number: str) -> bool:
    """Weights 9 to 1, by 101 and by 100."""
    return sum(int(char) * (9 - place) for place, char in enumerate(number[:9])) % 101 % 100 == int(number[9:])


def latvian_person(number: str) -> bool:
    """Numbers from 2017 on begin with 32 and have no check digit."""
    checks = "date:dmy/0+weights:11/10 5 8 4 2 1 6 3 7 9/12345678900"
    return number.startswith("32") or _all_hold(checks, number)


def portuguese_card(number: str) -> bool:
    """Luhn over letters that count as one value."""
    products = [int(char, 36) * (1 + place % 2) for place, char in enumerate(reversed(number))]
    return sum(one - 9 if one > 9 and place % 2 else one for place, one in enumerate(products)) % 10 == 0


def austrian_firm(number: str) -> bool:
    """The digits of the products with 1 and 2, and four more."""
    total = 4 + sum(sum(divmod(int(char) * (1 + place % 2), 10)) for place, char in enumerate(number[:7]))
    return -total % 10 == int(number[7])


def cypriot_firm(number: str) -> bool:
    """Even places count as they are, odd ones by a table; a letter by 26."""
    total = sum(int(char) if place % 2 else _ODD_PLACES[int(char)] for place, char in enumerate(number[:8]))
    return chr(65 + total % 26) == number[8]


def turkish_firm(number: str) -> bool:
    """Each digit is shifted by its place and doubled as often (GIB)."""
    shifted = [(int(char) + 9 - place) % 10 for place, char in enumerate(number[:9])]
    total = sum(one and (one * 2 ** (9 - place) % 9 or 9) for place, one in enumerate(shifted))
    return -total % 10 == int(number[9])


def dominican_firm(number: str) -> bool:
    """Weights 7 9 8 6 5 4 3 2 by 11, then by 9 (DGII)."""
    total = sum(int(char) * weight for char, weight in zip(number, (7, 9, 8, 6, 5, 4, 3, 2), strict=False))
    return (10 - total % 11) % 9 + 1 == int(number[8])


def brazilian_driver(number: str) -> bool:
    """Two check digits by 11; the first may take two from the second (CNH)."""
    digits = [int(char) for char in number[:9]]
    first = sum(digit * (9 - place) for place, digit in enumerate(digits)) % 11
    second = sum(digit * (1 + place) for place, digit in enumerate(digits)) % 11
    second = 0 if second == 10 else (second - 2 * (first == 10)) % 11
    return f"{first % 10}{second}" == number[9:]


def korean_person(number: str) -> bool:
    """Weights by 11. The check digit is no longer kept since October 2020."""
    is_new = number[6] in "3478" and number[:2] >= "20"
    return is_new or weights(number, "11/-2 -3 -4 -5 -6 -7 -8 -9 -2 -3 -4 -5/11234567890")


def korean_firm(number: str) -> bool:
    """Weights 1 3 7, and a carry from the ninth digit."""
    return weights(number + str(int(number[8]) * 5 // 10), "10/1 3 7 1 3 7 1 3 5 1 1")


def taiwanese_person(number: str) -> bool:
    """A letter counts as two digits, from A as 10 on, in an order of its own."""
    code = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(number[0]) + 10
    return weights(f"{code}{number[1:]}", "10/1 9 8 7 6 5 4 3 2 1 1")


def taiwanese_firm(number: str) -> bool:
    """Weights 1 2 1 2 1 2 4 1, digit sums, by 5 (rule of 2023)."""
    total = sum(
        sum(divmod(int(char) * weight, 10)) for char, weight in zip(number, (1, 2, 1, 2, 1, 2, 4, 1), strict=True)
    )
    return total % 5 == 0 or (number[6] == "7" and total % 5 == 4)


def singaporean(number: str) -> bool:
    """Weights 2 7 6 5 4 3 2 by 11, letters by the kind of number, which may add to the sum."""
    plus, signs = {
        "S": (0, "JZIHGFEDCBA"), "T": (4, "JZIHGFEDCBA"),
        "F": (0, "XWUTRQPNMLK"), "G": (4, "XWUTRQPNMLK"), "M": (3, "XWUTRQPNJLK"),
    }[number[0]]  # fmt: skip
    return weights(f"{plus}{number[1:]}", f"11/1 2 7 6 5 4 3 2/{signs}")


def hong_kong(number: str) -> bool:
    """A blank before one letter counts 36; weights 9 to 1, A is ten."""
    return weights(number, f"11={0 if len(number) == 9 else -36 * 9 % 11}/9 8 7 6 5 4 3 2 1")


def new_zealand_health(number: str) -> bool:
    """Letters without I and O count from 1; weights 7 to 2; a digit by 11 or a letter by 23."""
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"
    signs = " 0987654321" if number[6] in DIGITS else letters[22::-1]
    return weights(number, f"{len(signs)}/7 6 5 4 3 2/{signs}/ {letters}")


def vat(value: str, _argument: str) -> bool:
    """Check a European number of value added tax: its country's letters, then that country's form and check digits."""
    number = re.sub(r"(?<=^AT)U|(?<=^CH)E|(?<=\d)(?:MWST|MVA|TVA)$", "", number_of(value))
    return _any_holds(_FIRMS, number[2:], number[:2])


def firm(value: str, _argument: str) -> bool:
    """Check a number of a firm by the check digits of any country; letters before and `RT0001` behind do not count."""
    return _any_holds(_FIRMS, digits_of(value.upper().partition("RT")[0]))


def person(value: str, _argument: str) -> bool:
    """Check a number of a person whose name several countries have."""
    return _any_holds(_PEOPLE, number_of(value))


def _any_holds(table: str, number: str, country: str = "") -> bool:
    rows = [row.split(" ", 2) for row in table.strip().splitlines()]
    return any(
        re.fullmatch(form, number) and _all_hold(checks, number) for name, form, checks in rows if country in ("", name)
    )


def _all_hold(checks: str, number: str) -> bool:
    parts = [check.partition(":") for check in checks.split("+")]
    return all(NUMBERS[name](number, argument) for name, _, argument in parts)


def _shaped(form: str, check: Callable[[str], bool]) -> Check:
    """Make a check of the letters and digits of a match: their form, then `check`."""

    def shaped(value: str, _argument: str) -> bool:
        number = number_of(value)
        return re.fullmatch(form, number) is not None and check(number)

    return shaped


NUMBERS: Mapping[str, Check] = {
    **CHECKS,
    "vat": vat,
    "firm": firm,
    "person": person,
    "vat-at": _shaped(r"\d{8}", austrian_firm),
    "vat-cy": _shaped(r"\d{8}[A-Z]", cypriot_firm),
    "br-cnh": _shaped(r"\d{11}", brazilian_driver),
    "de-tax": _shaped(r"[1-9]\d{10}", german_tax),
    "do-rnc": _shaped(r"\d{9}", dominican_firm),
    "es-cif": _shaped(r"[ABCDEFGHJNPQRSUVW]\d{7}[\dA-J]", spanish_firm),
    "es-ssn": _shaped(r"\d{12}", spanish_insured),
    "fr-nir": _shaped(r"[123478]\d\d(?:0[1-9]|1[0-2]|[23]\d|4[0-2]|[5-9]\d)(?:\d\d|2[AB])\d{8}", french_person),
    "hk-id": _shaped(r"[A-Z]{1,2}\d{6}[\dA]", hong_kong),
    "ie-pps": _shaped(r"\d{7}[A-W][A-Z]?", irish_person),
    "in-gstin": _shaped(r"[\dA-Z]{15}", lambda number: luhn_holds(number, 36)),
    "it-tax": _shaped(r"[A-Z]{6}[\dA-Z]{2}[ABCDEHLMPRST][\dA-Z]{6}[A-Z]", italian_person),
    "kr-brn": _shaped(r"\d{10}", korean_firm),
    "kr-rrn": _shaped(r"\d{13}", korean_person),
    "lu-id": _shaped(r"\d{13}", luxembourgish_person),
    "lv-pk": _shaped(r"32\d{9}|\d{6}[0-2]\d{4}", latvian_person),
    "npi": _shaped(r"[12]\d{9}", lambda number: luhn_holds("80840" + number)),
    "nz-nhi": _shaped(r"[A-HJ-NP-Z]{3}\d\d(?:\d\d|[A-HJ-NP-Z]{2})", new_zealand_health),
    "pt-card": _shaped(r"\d{9}[A-Z]{2}\d", portuguese_card),
    "ru-snils": _shaped(r"\d{11}", russian_insured),
    "sg-nric": _shaped(r"[STFGM]\d{7}[A-Z]", singaporean),
    "tr-vkn": _shaped(r"\d{10}", turkish_firm),
    "tw-id": _shaped(r"[A-Z][1289]\d{8}", taiwanese_person),
    "tw-ubn": _shaped(r"\d{8}", taiwanese_firm),
}
