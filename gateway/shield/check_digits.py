"""Check digits and dates that rules name with their figures, and the numbers of cards, accounts and vehicles. Pure.

A check takes the text of a match, separators and all, and the argument that the rule gives behind a colon. It says
whether the number could have been issued, never whether it was; a number whose digits are all the same never could.
The form of the number is the pattern's to say. Fields of an argument are parted by `/`, numbers in it by blanks:

    weights:11/10 9 8 7 6 5 4 3 2 1             the weighted sum leaves 0 by 11
    weights:97=0 42 55/8 7 6 5 4 3 2 10 1       the weighted sum leaves 0, 42 or 55
    weights:11/9 8 7 6 5 4 3 2/01234567890      the character behind the weighted ones is the sign at the remainder
    weights:23/8 7 6 5 4 3 2 -1//WABCDEFG       a character counts as its place in the last field, else as in base 36
    two-rounds:1 2 3 4/3 4 5 6                  the sum by 11 is the last digit; where it is 10, that of other weights
    digit-sums:2 1 2 5                          the digits of all products add up to the last digit
    letter:-1/TRWAG                             the last character is the letter at the remainder of the number
    luhn:10, luhn:-10                           all digits hold by Luhn, or the first ten, or the last ten
    date:dmy/2/40 80/60                         six digits from place 2 are a date; a month may have 40 or 80 more, a
                                                day 60
"""

import re
from calendar import monthrange
from collections.abc import Callable, Mapping

Check = Callable[[str, str], bool]

DIGITS = "0123456789"
ALNUM = DIGITS + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FEW_DIGITS = 5
_VERHOEFF_TIMES = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_TURNS = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip
_IBAN_CHARS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29,
    "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29,
    "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28,
    "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28,
    "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20,
    "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25,
    "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27,
    "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}  # fmt: skip
_BIC_COUNTRIES = (
    "US CA MX JP CN HK SG TW KR IN AU NZ ZA AR CL CO PE TH VN ID MY PH BD LK NP KE NG GH MA DZ AM UZ KH".split()
)
# First digits and lengths, ISO/IEC 7812 ranges as the card schemes publish them.
_CARDS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})"  # Visa
    r"|(?=\d{16}$)(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)\d*"  # Mastercard
    r"|3[47]\d{13}|(?=\d{14}$)(?:30[0-5]|3095|36|38|39)\d*"  # American Express, Diners Club
    r"|(?=(?:\d{3})?\d{16}$)(?:60|64[4-9]|65)\d*|62\d{14,17}|8[12]\d{14}"  # Discover, UnionPay
    r"|(?:1800|2131)\d{11}|35\d{14}|35(?:2[89]|[3-8]\d)\d{15}"  # JCB
    r"|220[0-4]\d{12,15}|9792\d{12}|0604\d{8,15}|(?:50|56|57|58|63|67)\d{10,17}"  # Mir, Troy, Ukrcard, Maestro
)


def number_of(value: str) -> str:
    """Leave the ASCII letters and digits of `value`, in capitals; empty when all its digits are the same."""
    number = "".join(char for char in value.upper() if char in ALNUM)
    found = [char for char in number if char in DIGITS]
    return number if len(set(found)) > 1 or len(found) < _FEW_DIGITS else ""


def digits_of(value: str) -> str:
    """Leave the digits of `value`; empty when they are all the same."""
    return "".join(char for char in number_of(value) if char in DIGITS)


def varied(value: str, _argument: str) -> bool:
    """Say whether there are two different digits."""
    return bool(digits_of(value))


def weights(value: str, argument: str) -> bool:
    """Check a weighted sum; a number that is too short gets noughts before it."""
    modulus, weighing, signs, alphabet = [*argument.split("/"), "", ""][:4]
    divisor, _, remainders = modulus.partition("=")
    factors = [int(weight) for weight in weighing.split()]
    number = number_of(value)
    padded = number.zfill(len(factors) + bool(signs))
    worths = [alphabet.index(char) if char in alphabet else int(char, 36) for char in padded]
    rest = _dot(worths, factors) % int(divisor)
    if signs:
        return bool(number) and rest < len(signs) and signs[rest] == padded[len(factors)]
    return bool(number) and str(rest) in (remainders or "0").split()


def two_rounds(value: str, argument: str) -> bool:
    """Check the last digit by weights, and by others where these give 10."""
    rounds = [[int(weight) for weight in field.split()] for field in argument.split("/")]
    number = [int(char) for char in digits_of(value).zfill(len(rounds[0]) + 1)]
    rests = [_dot(number, factors) % 11 for factors in rounds]
    return any(number) and next((rest for rest in rests if rest < 10), 0) == number[-1]


def digit_sums(value: str, argument: str) -> bool:
    """Check the last digit by the sum of the digits of all products; weights repeat, a letter counts as two digits."""
    number, factors = number_of(value), [int(weight) for weight in argument.split()]
    spread = "".join(char if char in DIGITS else f"{ord(char) - 64:02d}" for char in number[:-1])
    total = sum(sum(divmod(int(char) * factors[place % len(factors)], 10)) for place, char in enumerate(spread))
    return number[-1:] == str(total % 10)


def letter(value: str, argument: str) -> bool:
    """Check the character at a place by the remainder of the digits before it; X, Y and Z count as 0, 1 and 2."""
    at, letters = argument.split("/")
    number = number_of(value)
    before = "".join(char for char in number[: int(at)].translate(str.maketrans("XYZ", "012")) if char in DIGITS)
    return bool(before) and letters[int(before) % len(letters)] == number[int(at) :][:1]


def date(value: str, argument: str) -> bool:
    """Check that six digits are a date in the calendar; the year counts by its remainder by four only."""
    order, begin, months, days = [*argument.split("/"), "", ""][:4]
    found = digits_of(value)[int(begin) :][:6]
    if len(found) < 6:
        return False
    year, month, day = (int(found[at : at + 2]) for at in ((0, 2, 4) if order == "ymd" else (4, 2, 0)))
    return any(
        0 < month - more <= 12 and 0 < day - later <= monthrange(2000 + year % 4, month - more)[1]
        for more in (0, *map(int, months.split()))
        for later in (0, *map(int, days.split()))
    )


def luhn(value: str, argument: str) -> bool:
    """Check the Luhn digit, which is the last one (ISO/IEC 7812-1 annex B)."""
    number, chars = digits_of(value), int(argument or 0)
    return luhn_holds(number[:chars] if chars > 0 else number[chars:])


def luhn_holds(number: str, base: int = 10) -> bool:
    """Check the Luhn digit of `number`, or its Luhn character in another base."""
    products = [int(char, 36) * (1 + place % 2) for place, char in enumerate(reversed(number))]
    return bool(number) and sum(sum(divmod(product, base)) for product in products) % base == 0


def verhoeff(value: str, _argument: str) -> bool:
    """Check the last digit by Verhoeff's dihedral scheme."""
    number, state = digits_of(value), 0
    for place, char in enumerate(reversed(number)):
        state = int(_VERHOEFF_TIMES[state][int(_VERHOEFF_TURNS[place % 8][int(char)])])
    return bool(number) and state == 0


def mod11_10(value: str, _argument: str) -> bool:
    """Check the last digit by ISO 7064 mod 11,10."""
    number, state = digits_of(value), 10
    for char in number[:-1]:
        state = ((state + int(char)) % 10 or 10) * 2 % 11
    return bool(number) and (11 - state) % 10 == int(number[-1])


def mod97(number: str) -> int:
    """Return the remainder by 97 of letters and digits, A counting as 10 (ISO 7064)."""
    return int("".join(str(int(char, 36)) for char in number)) % 97


def card(value: str, argument: str) -> bool:
    """Check a payment card: issuer range and length (ISO/IEC 7812), then Luhn. `argument`: fewest digits, or empty."""
    number = digits_of(value)
    return len(number) >= int(argument or 12) and bool(_CARDS.fullmatch(number)) and luhn_holds(number)


def iban(value: str, _argument: str) -> bool:
    """Check an IBAN: the country's length, then ISO 7064 mod 97,10 (ISO 13616)."""
    number = number_of(value)
    return _IBAN_CHARS.get(number[:2]) == len(number) and number[2:4].isdigit() and mod97(number[4:] + number[:4]) == 1


def aba(value: str, _argument: str) -> bool:
    """Check a US routing number: a Federal Reserve prefix, weights 3 7 1 (American Bankers Association)."""
    is_issued = re.fullmatch(r"(?:0\d|1[0-2]|2[1-9]|3[0-2]|6[1-9]|7[0-2]|80)\d{7}", digits_of(value))
    return bool(is_issued) and weights(value, "10/3 7 1 3 7 1 3 7 1")


def bic(value: str, _argument: str) -> bool:
    """Check the shape and the country of a SWIFT code (ISO 9362). It has no check digit."""
    number = number_of(value)
    is_known = number[4:6] in _IBAN_CHARS or number[4:6] in _BIC_COUNTRIES
    return len(number) in (8, 11) and number[:6].isalpha() and is_known


def vin(value: str, _argument: str) -> bool:
    """Check a vehicle number: ISO 3779, check digit of 49 CFR 565.15 in place 9."""
    number = number_of(value)
    if not re.fullmatch(r"(?!\d+$)[\dA-HJ-NPR-Z]{17}", number):
        return False
    # A to H count from 1, J to R from 1, S to Z from 2.
    worths = [int(char) if char in DIGITS else " ABCDEFGH  JKLMNOPQR  STUVWXYZ".index(char) % 10 for char in number]
    return number[8] == "0123456789X"[_dot(worths, [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2]) % 11]


def mrz(value: str, _argument: str) -> bool:
    """Check the second line of a passport's machine-readable zone: three check digits of weights 7 3 1 (ICAO 9303)."""
    line = value.upper()[-44:].replace("<", "0")
    fields = (line[0:10], line[13:20], line[21:28])
    factors = ([7, 3, 1] * 3, [7, 3, 1] * 2, [7, 3, 1] * 2)
    if len(line) != 44 or not all(char in ALNUM for field in fields for char in field):
        return False
    worths = [[int(char, 36) for char in field] for field in fields]
    return all(_dot(one[:-1], factor) % 10 == one[-1] for one, factor in zip(worths, factors, strict=True))


def _dot(numbers: list[int], factors: list[int]) -> int:
    return sum(number * factor for number, factor in zip(numbers, factors, strict=False))


# A rule names a check as its function here, with a hyphen.
CHECKS: Mapping[str, Check] = {
    check.__name__.replace("_", "-"): check
    for check in (varied, weights, two_rounds, digit_sums, letter, date, luhn, verhoeff, mod11_10)
    + (card, iban, aba, bic, vin, mrz)
}
