"""Check digits: what the table of numbers is read with, and the numbers of cards and bank accounts. Pure.

A check takes the text of a match, separators and all, and an argument that only a few use. It says whether the
number could have been issued, never whether it was. A number whose digits are all the same never could.
"""

import re
from collections.abc import Callable, Sequence

Check = Callable[[str, str], bool]
Holds = Callable[[str], bool]

DIGITS = "0123456789"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ALNUM = DIGITS + LETTERS
_FEW_DIGITS = 5
_VERHOEFF_TIMES = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_TURNS = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip
IBAN_CHARS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29,
    "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29,
    "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28,
    "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28,
    "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20,
    "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25,
    "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27,
    "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}  # fmt: skip
# The digits of twice a digit, added up.
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_BIC_COUNTRIES = "US CA MX JP CN HK SG TW KR IN AU NZ ZA AR CL CO PE TH VN ID MY PH BD LK NP KE NG GH MA DZ AM UZ KH"
# First digits from and to, and the lengths issued: ISO/IEC 7812 ranges as the card schemes publish them.
_CARD_RANGES: tuple[tuple[str, str, Sequence[int]], ...] = (
    ("4", "4", (13, 16, 19)),
    ("51", "55", (16,)),
    ("2221", "2720", (16,)),
    ("34", "34", (15,)),
    ("37", "37", (15,)),
    ("300", "305", (14,)),
    ("3095", "3095", (14,)),
    ("36", "36", (14,)),
    ("38", "39", (14,)),
    ("60", "60", (16, 19)),
    ("644", "659", (16, 19)),
    ("62", "62", range(16, 20)),
    ("81", "82", (16,)),
    ("35", "35", (16,)),
    ("3528", "3589", (19,)),
    ("1800", "1800", (15,)),
    ("2131", "2131", (15,)),
    ("2200", "2204", range(16, 20)),
    ("9792", "9792", (16,)),
    ("0604", "0604", range(12, 20)),
    ("50", "50", range(12, 20)),
    ("56", "58", range(12, 20)),
    ("63", "63", range(12, 20)),
    ("67", "67", range(12, 20)),
)


def plain(value: str) -> str:
    """Leave the ASCII letters and digits of `value`, in capitals."""
    return "".join(char for char in value.upper() if char in DIGITS or char in LETTERS)


def numbers_of(value: str, lengths: Sequence[int]) -> list[int]:
    """Read the digits of `value`; empty when their count is not in `lengths` or they are all the same."""
    found = [int(char) for char in value if char in DIGITS]
    return found if len(found) in lengths and len(set(found)) > 1 else []


def digits(form: str | int, *holds: Holds) -> Check:
    """Make a check of the digits of a match: their form (or their count), then all of `holds`."""
    return _reader(rf"\d{{{form}}}" if isinstance(form, int) else form, lambda value: _only(value, DIGITS), holds)


def text(form: str, *holds: Holds) -> Check:
    """Make a check of the capital letters and digits of a match: their form, then all of `holds`."""
    return _reader(form, plain, holds)


def _only(value: str, kept: str) -> str:
    return "".join(char for char in value if char in kept)


def _reader(form: str, read: Callable[[str], str], holds: tuple[Holds, ...]) -> Check:
    def check(value: str, _argument: str) -> bool:
        number = read(value)
        numbers = _only(number, DIGITS)
        is_varied = len(set(numbers)) > 1 or len(numbers) < _FEW_DIGITS
        return is_varied and re.fullmatch(form, number) is not None and all(hold(number) for hold in holds)

    return check


def any_of(*checks: Check) -> Check:
    """Make a check that holds if one of several does."""
    return lambda value, argument: any(check(value, argument) for check in checks)


def weighted(
    weights: Sequence[int], modulus: int, signs: str = ALNUM, *, at: int = -1, plus: int = 0, values: str = ALNUM
) -> Holds:
    """Hold if the character at `at` is the one of `signs` at the weighted sum plus `plus`, by `modulus`.

    A character counts as its place in `values`. Negative weights give what is missing to a multiple.
    """

    def hold(number: str) -> bool:
        place = (
            sum(values.index(char) * weight for char, weight in zip(number, weights, strict=False)) + plus
        ) % modulus
        return place < len(signs) and signs[place] == number[at]

    return hold


def multiple(weights: Sequence[int], modulus: int, remainders: Sequence[int] = (0,)) -> Holds:
    """Hold if the weighted sum over all characters leaves one of `remainders`."""
    return lambda number: dot([int(char, 36) for char in number], weights) % modulus in remainders


def remainder(modulus: int, length: int, check: Callable[[int], int] = lambda rest: rest) -> Holds:
    """Hold if the digits behind the first `length` are the remainder of these, or what `check` makes of it."""
    return lambda number: check(int(number[:length]) % modulus) == int(number[length:])


def two_rounds(first: Sequence[int], second: Sequence[int]) -> Holds:
    """Hold if the last digit is the weighted sum by 11; where that is 10, with the second weights, and then 0."""

    def hold(number: str) -> bool:
        numbers = [int(char) for char in number]
        rests = [dot(numbers[:-1], weights) % 11 for weights in (first, second)]
        return (rests[0] if rests[0] < 10 else rests[1] % 10) == numbers[-1]

    return hold


def digit_sums(weights: Sequence[int]) -> Holds:
    """Hold if the last digit is the sum of the digits of all products by 10; a letter counts as two digits."""

    def hold(number: str) -> bool:
        spread = "".join(char if char in DIGITS else f"{ord(char) - 64:02d}" for char in number[:-1])
        products = [int(char) * weights[place % len(weights)] for place, char in enumerate(spread)]
        return sum(sum(divmod(product, 10)) for product in products) % 10 == int(number[-1])

    return hold


def date(at: int = 0, order: str = "ymd", *, months: Sequence[int] = (0,), days: Sequence[int] = (0,)) -> Holds:
    """Hold if six digits at `at` are a date, less one of the numbers that may be added to its month and its day."""

    def hold(number: str) -> bool:
        pairs = [int(number[place : place + 2]) for place in (at, at + 2, at + 4)]
        year, month, day = pairs if order == "ymd" else reversed(pairs)
        return any(is_date(year, month - later, day - more) for later in months for more in days)

    return hold


def part(cut: slice, hold: Holds) -> Holds:
    """Make `hold` look at a part of the number."""
    return lambda number: hold(number[cut])


def padded(length: int, hold: Holds) -> Holds:
    """Make `hold` look at the number with noughts before it."""
    return lambda number: hold(number.zfill(length))


def luhn_holds(number: str) -> bool:
    """Check the Luhn digit, which is the last one (ISO/IEC 7812-1 annex B)."""
    numbers = [int(char) for char in number]
    return (sum(numbers[-1::-2]) + sum([_DOUBLED[one] for one in numbers[-2::-2]])) % 10 == 0


def dot(numbers: Sequence[int], weights: Sequence[int]) -> int:
    """Add up each number times its weight; the shorter of the two ends it."""
    return sum(number * weight for number, weight in zip(numbers, weights, strict=False))


def is_date(year: int, month: int, day: int) -> bool:
    """Say whether the calendar has this day. Of `year` only the remainder by four matters."""
    days = (31, 29 if year % 4 == 0 else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= month <= 12 and 1 <= day <= days[month - 1]


def verhoeff_holds(number: str) -> bool:
    """Check the last digit by Verhoeff's dihedral scheme."""
    state = 0
    for place, char in enumerate(reversed(number)):
        state = int(_VERHOEFF_TIMES[state][int(_VERHOEFF_TURNS[place % 8][int(char)])])
    return state == 0


def mod11_10(number: str) -> bool:
    """Check the last digit by ISO 7064 mod 11,10."""
    state = 10
    for char in number[:-1]:
        state = ((state + int(char)) % 10 or 10) * 2 % 11
    return (11 - state) % 10 == int(number[-1])


def dated(value: str, argument: str) -> bool:
    """Check a number that only carries a date: `argument` is its length and `ymd` or `dmy` with the date's place.

    To the day of a woman Indonesia adds 40.
    """
    length, order, at = argument.split("/")
    return digits(int(length), date(int(at), order, days=(0, 40) if order == "dmy" else (0,)))(value, "")


def verhoeff(value: str, argument: str) -> bool:
    """Check `argument` or 12 digits by Verhoeff's check digit; as in an Aadhaar number the first is 2 to 9 (UIDAI)."""
    return digits(rf"[2-9]\d{{{int(argument or 12) - 1}}}", verhoeff_holds)(value, "")


def luhn(value: str, argument: str) -> bool:
    """Check the Luhn digit of `argument` digits, or of 8 to 24 (ISO/IEC 7812-1 annex B)."""
    return digits(int(argument) if argument else r"\d{8,24}", luhn_holds)(value, "")


def card(value: str, argument: str) -> bool:
    """Check a payment card: issuer range and length (ISO/IEC 7812), then Luhn. `argument`: fewest digits, or empty."""
    number = "".join(map(str, numbers_of(value, range(int(argument or 12), 20))))
    known = any(low <= number[: len(low)] <= high and len(number) in lengths for low, high, lengths in _CARD_RANGES)
    return known and luhn_holds(number)


def iban(value: str, _argument: str) -> bool:
    """Check an IBAN: the country's length, then ISO 7064 mod 97,10 (ISO 13616)."""
    number = plain(value)
    if IBAN_CHARS.get(number[:2]) != len(number) or not number[2:4].isdigit():
        return False
    return int("".join(str(int(char, 36)) for char in number[4:] + number[:4])) % 97 == 1


def aba(value: str, _argument: str) -> bool:
    """Check a US routing number: a Federal Reserve prefix, weights 3 7 1 (American Bankers Association)."""
    numbers = numbers_of(value, (9,))
    prefix = numbers[0] * 10 + numbers[1] if numbers else 99
    known = prefix <= 12 or 21 <= prefix <= 32 or 61 <= prefix <= 72 or prefix == 80
    return known and dot(numbers, (3, 7, 1) * 3) % 10 == 0


def bic(value: str, _argument: str) -> bool:
    """Check the shape and the country of a SWIFT code (ISO 9362). It has no check digit."""
    number = plain(value)
    fits = len(number) in (8, 11) and number[:6].isalpha()
    return fits and (number[4:6] in IBAN_CHARS or number[4:6] in _BIC_COUNTRIES.split())


def vin(value: str, _argument: str) -> bool:
    """Check a vehicle number: ISO 3779, check digit of 49 CFR 565.15 in place 9."""
    number = plain(value)
    if len(number) != 17 or set(number) & set("IOQ") or number.isdigit():
        return False
    worths = [*range(10), *range(1, 9), 1, 2, 3, 4, 5, 7, 9, *range(2, 10)]
    worth = dict(zip(DIGITS + "ABCDEFGHJKLMNPRSTUVWXYZ", worths, strict=True))
    total = dot([worth[char] for char in number], (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2))
    return number[8] == "0123456789X"[total % 11]


def mrz(value: str, _argument: str) -> bool:
    """Check the second line of a passport's machine-readable zone: three check digits of weights 7 3 1 (ICAO 9303)."""
    line = value.upper()[-44:]
    if len(line) != 44:
        return False
    worth = {char: place for place, char in enumerate(DIGITS + LETTERS)} | {"<": 0}

    def holds(first: int, last: int) -> bool:
        field = [worth.get(char, 0) for char in line[first:last]]
        return dot(field, (7, 3, 1) * 4) % 10 == worth.get(line[last])

    return holds(0, 9) and holds(13, 19) and holds(21, 27)
