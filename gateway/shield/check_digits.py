"""Check digits: the algorithms many numbers share, and the numbers of cards and bank accounts. Pure.

A check takes the text of a match, separators and all, and an argument that only a few use. It says whether the
number could have been issued, never whether it was. A number whose digits are all the same never could.
"""

from collections.abc import Callable, Mapping, Sequence

Check = Callable[[str, str], bool]

DIGITS = "0123456789"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
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


def luhn_holds(numbers: Sequence[int]) -> bool:
    """Check the Luhn digit, which is the last one (ISO/IEC 7812-1 annex B)."""
    return (sum(numbers[-1::-2]) + sum([_DOUBLED[number] for number in numbers[-2::-2]])) % 10 == 0


def dot(numbers: Sequence[int], weights: Sequence[int]) -> int:
    """Add up each number times its weight; the shorter of the two ends it."""
    return sum(number * weight for number, weight in zip(numbers, weights, strict=False))


def pair_at(numbers: Sequence[int], at: int) -> int:
    """Read the two digits at `at` as one number."""
    return numbers[at] * 10 + numbers[at + 1]


def is_date(year: int, month: int, day: int) -> bool:
    """Say whether the calendar has this day. Of `year` only the remainder by four matters."""
    days = (31, 29 if year % 4 == 0 else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= month <= 12 and 1 <= day <= days[month - 1]


def begins_with_date(numbers: Sequence[int], day_first: bool = False) -> bool:
    """Say whether six digits are a date: YYMMDD, or DDMMYY when `day_first`."""
    year, day = (pair_at(numbers, 4), pair_at(numbers, 0)) if day_first else (pair_at(numbers, 0), pair_at(numbers, 4))
    return is_date(year, pair_at(numbers, 2), day)


def weighted(length: int, weights: Sequence[int], modulus: int, carried: Mapping[int, int] | None = None) -> Check:
    """Make the check `last digit = weighted sum mod modulus`, where `carried` says what two-digit remainders become."""

    def check(value: str, _argument: str) -> bool:
        numbers = numbers_of(value, (length,))
        if not numbers:
            return False
        remainder = dot(numbers[: len(weights)], weights) % modulus
        return (carried or {}).get(remainder, remainder) == numbers[-1]

    return check


def luhn_of(length: int, first: str, date_at: int | None = None) -> Check:
    """Make a Luhn check for `length` digits of which the first is one of `first`, with YYMMDD at `date_at`."""

    def check(value: str, _argument: str) -> bool:
        numbers = numbers_of(value, (length,))
        if not numbers or str(numbers[0]) not in first or not luhn_holds(numbers):
            return False
        return date_at is None or begins_with_date(numbers[date_at:])

    return check


def verhoeff_holds(numbers: Sequence[int]) -> bool:
    """Check the last digit by Verhoeff's dihedral scheme."""
    state = 0
    for place, number in enumerate(reversed(numbers)):
        state = int(_VERHOEFF_TIMES[state][int(_VERHOEFF_TURNS[place % 8][number])])
    return state == 0


def verhoeff(value: str, argument: str) -> bool:
    """Check `argument` or 12 digits by Verhoeff's check digit; as in an Aadhaar number the first is 2 to 9 (UIDAI)."""
    numbers = numbers_of(value, (int(argument or 12),))
    return bool(numbers) and numbers[0] > 1 and verhoeff_holds(numbers)


def mod11_10_holds(numbers: Sequence[int]) -> bool:
    """Check the last digit by ISO 7064 mod 11,10."""
    state = 10
    for number in numbers[:-1]:
        state = ((state + number) % 10 or 10) * 2 % 11
    return (11 - state) % 10 == numbers[-1]


def dated_check(length: int, check: Check, day_first: bool = False) -> Check:
    """Make `check` also ask that the number begins with a date (YYMMDD or DDMMYY; months may carry a century)."""

    def both(value: str, argument: str) -> bool:
        numbers = numbers_of(value, (length,))
        if not numbers:
            return False
        month, day = pair_at(numbers, 2) % 20, pair_at(numbers, 0 if day_first else 4)
        return 1 <= (month or 20) <= 12 and 1 <= day <= 31 and check(value, argument)

    return both


def luhn(value: str, argument: str) -> bool:
    """Check the Luhn digit of `argument` digits, or of 8 to 24 (ISO/IEC 7812-1 annex B)."""
    numbers = numbers_of(value, (int(argument),) if argument else range(8, 25))
    return bool(numbers) and luhn_holds(numbers)


def card(value: str, argument: str) -> bool:
    """Check a payment card: issuer range and length (ISO/IEC 7812), then Luhn. `argument`: fewest digits, or empty."""
    numbers = numbers_of(value, range(int(argument or 12), 20))
    text = "".join(map(str, numbers))
    known = any(low <= text[: len(low)] <= high and len(text) in lengths for low, high, lengths in _CARD_RANGES)
    return known and luhn_holds(numbers)


def iban(value: str, _argument: str) -> bool:
    """Check an IBAN: the country's length, then ISO 7064 mod 97,10 (ISO 13616)."""
    text = plain(value)
    if IBAN_CHARS.get(text[:2]) != len(text) or not text[2:4].isdigit():
        return False
    return int("".join(str(int(char, 36)) for char in text[4:] + text[:4])) % 97 == 1


def aba(value: str, _argument: str) -> bool:
    """Check a US routing number: a Federal Reserve prefix, weights 3 7 1 (American Bankers Association)."""
    numbers = numbers_of(value, (9,))
    prefix = pair_at(numbers, 0) if numbers else 99
    known = prefix <= 12 or 21 <= prefix <= 32 or 61 <= prefix <= 72 or prefix == 80
    return known and dot(numbers, (3, 7, 1) * 3) % 10 == 0


def bic(value: str, _argument: str) -> bool:
    """Check the shape and the country of a SWIFT code (ISO 9362). It has no check digit."""
    text = plain(value)
    fits = len(text) in (8, 11) and text[:6].isalpha()
    return fits and (text[4:6] in IBAN_CHARS or text[4:6] in _BIC_COUNTRIES.split())


def vin(value: str, _argument: str) -> bool:
    """Check a vehicle number: ISO 3779, check digit of 49 CFR 565.15 in place 9."""
    text = plain(value)
    if len(text) != 17 or set(text) & set("IOQ") or text.isdigit():
        return False
    worths = [*range(10), *range(1, 9), 1, 2, 3, 4, 5, 7, 9, *range(2, 10)]
    worth = dict(zip(DIGITS + "ABCDEFGHJKLMNPRSTUVWXYZ", worths, strict=True))
    total = dot([worth[char] for char in text], (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2))
    return text[8] == "0123456789X"[total % 11]


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


CHECK_DIGITS: Mapping[str, Check] = {
    "luhn": luhn, "card": card, "iban": iban, "aba": aba, "bic": bic, "verhoeff": verhoeff, "vin": vin, "mrz": mrz,
}  # fmt: skip
