"""The numbers of people in further countries, their health and their identity cards: check digits and dates. Pure.

The algorithms are the issuing offices', as collected in the python-stdnum documentation, where no source is named.
"""

from collections.abc import Mapping

from gateway.shield.check_digits import (
    DIGITS,
    LETTERS,
    Check,
    begins_with_date,
    dot,
    is_date,
    luhn_holds,
    numbers_of,
    pair_at,
    plain,
    verhoeff_holds,
    weighted,
)
from gateway.shield.tax_numbers import two_rounds

_TO_NOUGHT = {10: 0}
_ICAO = {char: place for place, char in enumerate(DIGITS + LETTERS)}
_NHI = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # no I, no O


def kazakh(value: str, _argument: str) -> bool:
    """Check a Kazakh IIN: a date, century and sex, mod 11 in two rounds."""
    numbers = numbers_of(value, (12,))
    fits = bool(numbers) and begins_with_date(numbers) and 1 <= numbers[6] <= 6
    return fits and two_rounds(12, range(1, 12), (3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2))(value, "")


def luxembourgish(value: str, _argument: str) -> bool:
    """Check a Luxembourgish number: a date, Luhn in the twelfth digit, Verhoeff in the thirteenth (2014)."""
    numbers = numbers_of(value, (13,))
    if not numbers or not is_date(pair_at(numbers, 2), pair_at(numbers, 4), pair_at(numbers, 6)):
        return False
    return luhn_holds(numbers[:12]) and verhoeff_holds([*numbers[:11], numbers[12]])


def latvian(value: str, _argument: str) -> bool:
    """Check a Latvian code: a date and a check digit; codes that begin with 32 carry neither (2017)."""
    numbers = numbers_of(value, (11,))
    if not numbers or pair_at(numbers, 0) == 32:
        return bool(numbers)
    fits = begins_with_date(numbers, True) and numbers[6] <= 2
    return fits and (1 + dot(numbers, (10, 5, 8, 4, 2, 1, 6, 3, 7, 9))) % 11 % 10 == numbers[10]


def iranian(value: str, _argument: str) -> bool:
    """Check an Iranian national code: weights 10 to 2, mod 11, over 1 from 11."""
    numbers = numbers_of(value, (10,))
    remainder = dot(numbers[:9], range(10, 1, -1)) % 11
    return bool(numbers) and (remainder if remainder < 2 else 11 - remainder) == numbers[9]


def mauritian(value: str, _argument: str) -> bool:
    """Check a Mauritian number: initial, date, weights 14 to 2, mod 17."""
    text = plain(value)
    if len(text) != 14 or not text[0].isalpha() or not text[1:13].isdigit():
        return False
    total = dot([int(char, 36) for char in text[:13]], range(14, 1, -1))
    return begins_with_date([int(char) for char in text[1:7]], True) and (DIGITS + "ABCDEFG")[-total % 17] == text[13]


def zimbabwean(value: str, _argument: str) -> bool:
    """Check a Zimbabwean number: district, serial, a letter of the remainder by 23, district of origin."""
    text = plain(value)
    fits = len(text) in (11, 12) and text[-3].isalpha() and (text[:-3] + text[-2:]).isdigit()
    return fits and "ZABCDEFGHJKLMNPQRSTVWXY"[int(text[:-3]) % 23] == text[-3]


def icao_check(value: str, _argument: str) -> bool:
    """Check a number whose last digit is of weights 7 3 1 (ICAO 9303), as German cards and passports have it."""
    text = plain(value).removesuffix("D")
    if len(text) != 10 or not text[-1].isdigit() or len(set(text)) < 3:
        return False
    return dot([_ICAO[char] for char in text[:9]], (7, 3, 1) * 3) % 10 == int(text[9])


def polish_card(value: str, _argument: str) -> bool:
    """Check a Polish identity card: three letters, six digits, weights 7 3 1 9 7 3 1 7 3."""
    text = plain(value)
    if len(text) != 9 or not text[:3].isalpha() or not text[3:].isdigit() or len(set(text[3:])) == 1:
        return False
    return dot([_ICAO[char] for char in text], (7, 3, 1, 9, 7, 3, 1, 7, 3)) % 10 == 0


def german_health(value: str, _argument: str) -> bool:
    """Check a German health insurance number: a letter as two digits, weights 1 2, digit sums (GKV)."""
    text = plain(value)
    if len(text) != 10 or not text[0].isalpha() or not text[1:].isdigit():
        return False
    spread = f"{ord(text[0]) - 64:02d}{text[1:]}"
    total = sum(sum(divmod(int(char) * (1 + place % 2), 10)) for place, char in enumerate(spread[:10]))
    return total % 10 == int(text[9])


def new_zealand_health(value: str, _argument: str) -> bool:
    """Check a New Zealand health number: three letters, two digits, then two digits mod 11 or two letters mod 23."""
    text = plain(value)
    if len(text) != 7 or any(char not in _NHI for char in text[:3]) or not text[3:5].isdigit():
        return False
    worth = [_NHI.index(char) + 1 if char in _NHI else int(char) for char in text[:6]]
    total = dot(worth, range(7, 1, -1))
    if text[6].isdigit():
        return text[5].isdigit() and total % 11 != 0 and (11 - total % 11) % 10 == int(text[6])
    return text[5] in _NHI and text[6] == _NHI[22 - total % 23]


def new_zealand_tax(value: str, _argument: str) -> bool:
    """Check a New Zealand IRD number: mod 11, with other weights where that gives 10."""
    numbers = numbers_of(value, (8, 9))
    padded = [0] * (9 - len(numbers)) + numbers
    for weights in ((3, 2, 7, 6, 5, 4, 3, 2), (7, 4, 3, 2, 5, 2, 7, 6)):
        check = -dot(padded, weights) % 11
        if check != 10:
            return bool(numbers) and check == numbers[-1]
    return False


def british_taxpayer(value: str, _argument: str) -> bool:
    """Check a UK taxpayer reference: its first digit checks the other nine, mod 11."""
    numbers = numbers_of(value, (10,))
    total = dot(numbers[1:], (6, 7, 8, 9, 10, 5, 4, 3, 2)) % 11
    return bool(numbers) and int("21987654321"[total]) == numbers[0]


def french_taxpayer(value: str, _argument: str) -> bool:
    """Check a French tax number: ten digits and their remainder by 511 (DGFiP)."""
    text = plain(value)
    fits = len(text) == 13 and text.isdigit() and text[0] in "0123" and len(set(text)) > 1
    return fits and int(text[:10]) % 511 == int(text[10:])


def spanish_insurance(value: str, _argument: str) -> bool:
    """Check a Spanish insurance number: province and serial as one number, its remainder by 97."""
    text = plain(value)
    if len(text) not in (11, 12) or not text.isdigit() or len(set(text)) == 1:
        return False
    province, serial = int(text[:2]), int(text[2:-2])
    joined = province * 10_000_000 + serial if serial < 10_000_000 else int(text[:-2])
    return joined % 97 == int(text[-2:])


def dominican_taxpayer(value: str, _argument: str) -> bool:
    """Check a Dominican RNC: weights 7 9 8 6 5 4 3 2 (DGII)."""
    numbers = numbers_of(value, (9,))
    return bool(numbers) and (10 - dot(numbers, (7, 9, 8, 6, 5, 4, 3, 2)) % 11) % 9 + 1 == numbers[8]


def brazilian_licence(value: str, _argument: str) -> bool:
    """Check a Brazilian driver's number: two check digits mod 11, the first may take two from the second (CNH)."""
    numbers = numbers_of(value, (11,))
    first = dot(numbers[:9], range(9, 0, -1)) % 11
    lessened, first = (2, 0) if first >= 10 else (0, first)
    second = dot(numbers[:9], range(1, 10)) % 11
    second = 0 if second >= 10 else second - lessened
    return bool(numbers) and [first, second if second >= 0 else second + 11] == numbers[9:]


def brazilian_voter(value: str, _argument: str) -> bool:
    """Check a Brazilian voter's number: state 01 to 28, two check digits mod 11 (TSE)."""
    numbers = numbers_of(value, (12,))
    if not numbers or not 1 <= pair_at(numbers, 8) <= 28:
        return False
    first = dot(numbers, range(2, 10)) % 11 % 10
    return first == numbers[10] and dot(numbers[8:11], (7, 8, 9)) % 11 % 10 == numbers[11]


def orcid(value: str, _argument: str) -> bool:
    """Check a researcher's ORCID: sixteen places, ISO 7064 mod 11-2."""
    text = plain(value)
    if len(text) != 16 or not text[:15].isdigit() or len(set(text)) == 1:
        return False
    state = 0
    for char in text[:15]:
        state = (state + int(char)) * 2 % 11
    return (DIGITS + "X")[(12 - state) % 11] == text[15]


CITIZEN_VALIDATORS: Mapping[str, Check] = {
    "kz-iin": kazakh, "lu-id": luxembourgish, "lv-pk": latvian, "ir-code": iranian, "mu-id": mauritian,
    "zw-id": zimbabwean, "de-card": icao_check, "pl-card": polish_card, "de-kvnr": german_health,
    "nz-nhi": new_zealand_health, "nz-ird": new_zealand_tax, "gb-utr": british_taxpayer, "fr-spi": french_taxpayer,
    "es-ssn": spanish_insurance, "do-rnc": dominican_taxpayer, "br-cnh": brazilian_licence,
    "br-voter": brazilian_voter, "orcid": orcid,
    "md-idnp": weighted(13, (7, 3, 1) * 4, 10),
    "kw-id": weighted(12, (-2, -1, -6, -3, -7, -9, -10, -5, -8, -4, -2), 11),
    "sv-dui": weighted(9, range(-9, -1), 10),
    "br-pis": weighted(11, (-3, -2, -9, -8, -7, -6, -5, -4, -3, -2), 11, _TO_NOUGHT),
}  # fmt: skip
