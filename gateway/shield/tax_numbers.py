"""Numbers of value added tax, of taxpayers and of bank accounts: their check digits. Pure; knows no context word.

The algorithms are the issuing offices', as collected in the python-stdnum documentation, where no source is named.
"""

from collections.abc import Mapping, Sequence

from gateway.shield.check_digits import (
    DIGITS,
    LETTERS,
    Check,
    dot,
    luhn_holds,
    luhn_of,
    mod11_10_holds,
    numbers_of,
    plain,
    weighted,
)
from gateway.shield.id_numbers import ID_VALIDATORS, dni, irish

_TO_NOUGHT = {10: 0}
_ALNUM = DIGITS + LETTERS
_USCC = "0123456789ABCDEFGHJKLMNPQRTUWXY"  # GB 32100-2015: no I, O, S, V, Z
_CYPRIOT_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
_VENEZUELAN = {"V": 4, "E": 8, "J": 12, "P": 16, "G": 20}


def _sum_divides(length: int, weights: Sequence[int], modulus: int, remainders: Sequence[int] = (0,)) -> Check:
    def check(value: str, _argument: str) -> bool:
        numbers = numbers_of(value, (length,))
        return bool(numbers) and dot(numbers, weights) % modulus in remainders

    return check


def _any_of(*checks: Check) -> Check:
    return lambda value, argument: any(check(value, argument) for check in checks)


def two_rounds(length: int, first: Sequence[int], second: Sequence[int]) -> Check:
    """Make the check `last digit = weighted sum mod 11`; where that is 10, with the second weights, and then 0."""

    def check(value: str, _argument: str) -> bool:
        numbers = numbers_of(value, (length,))
        if not numbers:
            return False
        remainder = dot(numbers[:-1], first) % 11
        if remainder == 10:
            remainder = dot(numbers[:-1], second) % 11 % 10
        return remainder == numbers[-1]

    return check


def mod11_from_right(value: str, _argument: str) -> bool:
    """Check digits with weights 2, 3, 4 … from the right, mod 11; K stands for ten (Guatemala, Paraguay)."""
    text = plain(value)
    if not 5 <= len(text) <= 12 or not text[:-1].isdigit() or len(set(text[:-1])) == 1:
        return False
    total = -dot([int(char) for char in reversed(text[:-1])], range(2, 14)) % 11
    return (DIGITS + "K")[total] == text[-1] or (total == 10 and text[-1] == "0")


def _belgian_firm(value: str, _argument: str) -> bool:
    text = plain(value)
    return len(text) == 10 and text.isdigit() and text[0] in "01" and (int(text[:8]) + int(text[8:])) % 97 == 0


def _austrian_firm(value: str, _argument: str) -> bool:
    numbers = numbers_of(value, (8,))
    total = 4 + sum(sum(divmod(number * (1 + place % 2), 10)) for place, number in enumerate(numbers[:7]))
    return bool(numbers) and -total % 10 == numbers[7]


def _cypriot(value: str, _argument: str) -> bool:
    text = plain(value)
    if len(text) != 9 or not text[:8].isdigit():
        return False
    odd = sum(_CYPRIOT_ODD[int(char)] for char in text[0:8:2])
    return LETTERS[(odd + sum(map(int, text[1:8:2]))) % 26] == text[8]


def _czech_firm(value: str, _argument: str) -> bool:
    numbers = numbers_of(value, (8,))
    check = (11 - dot(numbers, range(8, 1, -1))) % 11
    return bool(numbers) and numbers[0] != 9 and (check or 1) % 10 == numbers[7]


def _greek_firm(value: str, _argument: str) -> bool:
    numbers = numbers_of(value, (9,))
    return bool(numbers) and dot(numbers, (256, 128, 64, 32, 16, 8, 4, 2)) % 11 % 10 == numbers[8]


def cif(value: str, _argument: str) -> bool:
    """Check a Spanish CIF: a letter, seven digits, a control digit or its letter."""
    text = plain(value)
    if len(text) != 9 or text[0] not in "ABCDEFGHJNPQRSUVW" or not text[1:8].isdigit():
        return False
    odd = sum(sum(divmod(2 * int(char), 10)) for char in text[1:8:2])
    control = -(odd + sum(map(int, text[2:8:2]))) % 10
    return text[8] in (str(control), "JABCDEFGHI"[control])


def _french_firm(value: str, _argument: str) -> bool:
    text = plain(value)
    if len(text) != 11 or not text[2:].isdigit():
        return False
    holds = luhn_holds([int(char) for char in text[2:]])
    return holds and (not text[:2].isdigit() or (12 + 3 * (int(text[2:]) % 97)) % 97 == int(text[:2]))


def _luxembourgish_firm(value: str, _argument: str) -> bool:
    text = plain(value)
    return len(text) == 8 and text.isdigit() and int(text[:6]) % 89 == int(text[6:])


def _dutch_firm(value: str, _argument: str) -> bool:
    text = plain(value)
    if len(text) != 12 or text[9] != "B" or not (text[:9] + text[10:]).isdigit():
        return False
    spread = "".join(str(int(char, 36)) for char in "NL" + text)
    return ID_VALIDATORS["nl-bsn"](text[:9], "") or int(spread) % 97 == 1


def _romanian_firm(value: str, _argument: str) -> bool:
    numbers = numbers_of(value, range(4, 11))
    padded = [0] * (10 - len(numbers)) + numbers
    return bool(numbers) and 10 * dot(padded, (7, 5, 3, 2, 1, 7, 5, 3, 2)) % 11 % 10 == numbers[-1]


def _swedish_firm(value: str, _argument: str) -> bool:
    numbers = numbers_of(value, (12,))
    return bool(numbers) and numbers[10:] == [0, 1] and luhn_holds(numbers[:10])


def _slovak_firm(value: str, _argument: str) -> bool:
    text = plain(value)
    return len(text) == 10 and text.isdigit() and text[0] != "0" and int(text) % 11 == 0


def _german_firm(value: str, _argument: str) -> bool:
    numbers = numbers_of(value, (9,))
    return bool(numbers) and numbers[0] != 0 and mod11_10_holds(numbers)


def _lithuanian_firm(value: str, _argument: str) -> bool:
    length = 12 if len(plain(value)) == 12 else 9
    first = [place % 9 + 1 for place in range(length - 1)]
    second = [(place + 2) % 9 + 1 for place in range(length - 1)]
    return two_rounds(length, first, second)(value, "")


def _own(name: str) -> Check:
    return ID_VALIDATORS[name]


_bulgarian_firm = two_rounds(9, range(1, 9), range(3, 11))
_NORWEGIAN_FIRM = _sum_divides(9, (3, 2, 7, 6, 5, 4, 3, 2, 1), 11)
_SWISS_FIRM = _sum_divides(9, (5, 4, 3, 2, 7, 6, 5, 4, 1), 11)
_VAT: Mapping[str, Check] = {
    "AT": _austrian_firm,
    "BE": _belgian_firm,
    "BG": _any_of(_bulgarian_firm, _own("bg-egn"), weighted(10, (-4, -3, -2, -7, -6, -5, -4, -3, -2), 11, _TO_NOUGHT)),
    "CH": _SWISS_FIRM,
    "CY": _cypriot,
    "CZ": _any_of(_czech_firm, _own("cz-rc")),
    "DE": _german_firm,
    "DK": _sum_divides(8, (2, 7, 6, 5, 4, 3, 2, 1), 11),
    "EE": _sum_divides(9, (3, 7, 1) * 3, 10),
    "EL": _greek_firm,
    "ES": _any_of(dni, cif),
    "FI": _sum_divides(8, (7, 9, 10, 5, 8, 4, 2, 1), 11),
    "FR": _french_firm,
    "GB": _sum_divides(9, (8, 7, 6, 5, 4, 3, 2, 10, 1), 97, (0, 42, 55)),
    "GR": _greek_firm,
    "HR": _own("hr-oib"),
    "HU": _sum_divides(8, (9, 7, 3, 1) * 2, 10),
    "IE": irish,
    "IT": luhn_of(11, DIGITS),
    "LT": _lithuanian_firm,
    "LU": _luxembourgish_firm,
    "LV": _sum_divides(11, (9, 1, 4, 8, 3, 10, 2, 5, 7, 6, 1), 11, (3,)),
    "MT": _sum_divides(8, (3, 4, 6, 7, 8, 9, 10, 1), 37),
    "NL": _dutch_firm,
    "NO": _NORWEGIAN_FIRM,
    "PL": _own("pl-nip"),
    "PT": _own("pt-nif"),
    "RO": _romanian_firm,
    "SE": _swedish_firm,
    "SI": weighted(8, range(-8, -1), 11, _TO_NOUGHT),
    "SK": _slovak_firm,
}


def vat(value: str, _argument: str) -> bool:
    """Check a European number of value added tax: its country's letters, then that country's check digits."""
    text = plain(value)
    country, number = ("CH", text[3:]) if text.startswith("CHE") else (text[:2], text[2:])
    number = number.removesuffix("MWST").removesuffix("MVA").removesuffix("TVA")
    if country == "AT":
        number = number.removeprefix("U")
    check = _VAT.get(country)
    return check is not None and check(number, "")


def gstin(value: str, _argument: str) -> bool:
    """Check an Indian GST number: state, PAN, and a check character by Luhn's way over 36 characters (GSTN)."""
    text = plain(value)
    if len(text) != 15 or not text[:2].isdigit() or not "01" <= text[:2] <= "38":
        return False
    total = sum(sum(divmod(_ALNUM.index(char) * (1 + place % 2), 36)) for place, char in enumerate(text[:14]))
    return ID_VALIDATORS["in-pan"](text[2:12], "") and _ALNUM[-total % 36] == text[14]


def chinese_firm(value: str, _argument: str) -> bool:
    """Check a Chinese unified social credit code: powers of three mod 31 (GB 32100-2015)."""
    text = plain(value)
    if len(text) != 18 or any(char not in _USCC for char in text) or not text[2:8].isdigit() or len(set(text)) == 1:
        return False
    total = sum(_USCC.index(char) * pow(3, place, 31) for place, char in enumerate(text[:17]))
    return _USCC[-total % 31] == text[17]


def korean_firm(value: str, _argument: str) -> bool:
    """Check a Korean business number: weights 1 3 7, and a carry from the ninth digit."""
    numbers = numbers_of(value, (10,))
    if not numbers:
        return False
    total = dot(numbers, (1, 3, 7, 1, 3, 7, 1, 3, 5)) + numbers[8] * 5 // 10
    return -total % 10 == numbers[9]


def colombian_nit(value: str, _argument: str) -> bool:
    """Check a Colombian NIT: primes from the right, mod 11 (DIAN)."""
    numbers = numbers_of(value, (9, 10))
    total = dot(numbers[-2::-1], (3, 7, 13, 17, 19, 23, 29, 37, 41)) % 11
    return bool(numbers) and int("01987654321"[total]) == numbers[-1]


def venezuelan_rif(value: str, _argument: str) -> bool:
    """Check a Venezuelan RIF: a letter that counts, weights 3 2 7 6 5 4 3 2, mod 11 (SENIAT)."""
    text = plain(value)
    if len(text) != 10 or text[0] not in _VENEZUELAN or not text[1:].isdigit():
        return False
    total = _VENEZUELAN[text[0]] + dot([int(char) for char in text[1:9]], (3, 2, 7, 6, 5, 4, 3, 2))
    return "00987654321"[total % 11] == text[9]


def turkish_firm(value: str, _argument: str) -> bool:
    """Check a Turkish tax number: each digit shifted by its place and doubled as often (GIB)."""
    numbers = numbers_of(value, (10,))
    total = 0
    for place, number in enumerate(numbers[:9]):
        shifted = (number + 9 - place) % 10
        total += shifted and (shifted * pow(2, 9 - place, 9) % 9 or 9)
    return bool(numbers) and -total % 10 == numbers[9]


def taiwanese_firm(value: str, _argument: str) -> bool:
    """Check a Taiwanese firm's number: weights 1 2 1 2 1 2 4 1, digit sums, mod 5 (rule of 2023)."""
    numbers = numbers_of(value, (8,))
    total = sum(sum(divmod(a * b, 10)) for a, b in zip(numbers, (1, 2, 1, 2, 1, 2, 4, 1), strict=False))
    return bool(numbers) and (total % 5 == 0 or (numbers[6] == 7 and (total + 1) % 5 == 0))


def cbu(value: str, _argument: str) -> bool:
    """Check an Argentine account: bank and account each have a check digit of weights 3 1 7 9 (BCRA)."""
    numbers = numbers_of(value, (22,))
    bank = -dot(numbers, (7, 1, 3, 9, 7, 1, 3)) % 10
    return bool(numbers) and bank == numbers[7] and -dot(numbers[8:21], (3, 9, 7, 1) * 4) % 10 == numbers[21]


def spanish_account(value: str, _argument: str) -> bool:
    """Check a Spanish account of twenty digits: two check digits mod 11 (CCC)."""
    numbers = numbers_of(value, (20,))
    weights = (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)

    def digit(part: Sequence[int]) -> int:
        return {10: 1, 11: 0}.get(11 - dot(part, weights) % 11, 11 - dot(part, weights) % 11)

    return bool(numbers) and [digit([0, 0, *numbers[:8]]), digit(numbers[10:])] == numbers[8:10]


def person(value: str, _argument: str) -> bool:
    """Check a number of a person by one of: Portuguese insurance or card, Hungarian tax, Luhn over eleven digits."""
    numbers, text = numbers_of(value, (10, 11)), plain(value)
    if len(text) == 12 and text[9:11].isalpha():
        worth = [int(char, 36) * (2 - place % 2) for place, char in enumerate(text)]
        return sum(one - 9 if one > 9 and place % 2 == 0 else one for place, one in enumerate(worth)) % 10 == 0
    if len(numbers) == 10:
        return dot(numbers[:9], range(1, 10)) % 11 == numbers[9]
    portuguese = 9 - dot(numbers[:10], (29, 23, 19, 17, 13, 11, 7, 5, 3, 2)) % 10
    return bool(numbers) and (luhn_holds(numbers) or portuguese == numbers[10])


def _long_firm(value: str, _argument: str) -> bool:
    """Check the firms of Russia and Japan, whose numbers have thirteen digits, and of Hungary with its office."""
    if len(value) == 13:
        japanese = 9 - dot([*map(int, value[1:])], (2, 1) * 6) % 9
        return int(value[:12]) % 11 % 10 == int(value[12]) or japanese == int(value[0])
    return len(value) == 11 and _VAT["HU"](value[:8], "")


_FIRMS: Sequence[Check] = (
    *(check for country, check in _VAT.items() if country != "FR"),
    *(luhn_of(length, DIGITS) for length in (9, 10)),
    weighted(8, range(1, 8), 11),  # Ukraine
    weighted(10, (2, 4, 10, 3, 5, 9, 4, 6, 8), 11, _TO_NOUGHT),  # Russia
    ID_VALIDATORS["br-cnpj"],
    _long_firm,
)


def firm(value: str, _argument: str) -> bool:
    """Check a number of a firm by the check digits of any country; letters before and `RT0001` behind do not count."""
    digits = "".join(char for char in plain(value).partition("RT")[0] if char in DIGITS)
    return len(set(digits)) > 1 and any(check(digits, "") for check in _FIRMS)


TAX_VALIDATORS: Mapping[str, Check] = {
    "vat": vat, "es-cif": cif, "in-gstin": gstin, "cn-uscc": chinese_firm, "kr-brn": korean_firm,
    "co-nit": colombian_nit, "ve-rif": venezuelan_rif, "tr-vkn": turkish_firm, "tw-ubn": taiwanese_firm,
    "person": person, "firm": firm,
    "ar-cbu": cbu, "es-ccc": spanish_account, "mod11-right": mod11_from_right, "ch-uid": _SWISS_FIRM,
    "no-org": _NORWEGIAN_FIRM,
    "mx-clabe": weighted(18, (-3, -7, -1) * 5 + (-3, -7), 10),
    "fr-siren": luhn_of(9, DIGITS),
    "fr-siret": luhn_of(14, DIGITS),
    "it-iva": luhn_of(11, DIGITS),
    "iccid": luhn_of(19, "8"),
    "pe-ruc": weighted(11, (-5, -4, -3, -2, -7, -6, -5, -4, -3, -2), 11, {0: 1, 10: 0}),
    "au-acn": weighted(9, range(-8, 0), 10),
    "pl-regon": weighted(9, (8, 9, 2, 3, 4, 5, 6, 7), 11, _TO_NOUGHT),
    "vn-mst": weighted(10, (31, 29, 23, 19, 17, 13, 7, 5, 3), 11, {rest: 10 - rest for rest in range(11)}),
}  # fmt: skip
