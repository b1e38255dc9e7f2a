"""The numbers states give to people and firms: check digits and dates. Pure; knows no rule and no context word.

Where no source is named, the algorithm is the issuing office's as collected in the python-stdnum documentation.
"""

from collections.abc import Mapping

from gateway.shield.check_digits import (
    DIGITS,
    LETTERS,
    Check,
    begins_with_date,
    dated_check,
    dot,
    luhn_holds,
    luhn_of,
    mod11_10_holds,
    numbers_of,
    pair_at,
    plain,
    weighted,
)

# The value of each character in an odd place of an Italian tax code (decree of 12 March 1974).
_ITALIAN_ODD = dict(
    zip(DIGITS + LETTERS, (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21,
                             2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23), strict=True)
)  # fmt: skip
_TAIWAN_PLACES = "ABCDEFGHJKLMNPQRSTUVXYWZIO"  # A is 10, B is 11 … in this order


def ssn(value: str, _argument: str) -> bool:
    """Check a US social security number: no area 000, 666, 9xx, no group 00, no serial 0000 (SSA)."""
    text = "".join(map(str, numbers_of(value, (9,))))
    withdrawn = ("078051120", "219099999", "457555462")
    fits = text[:1] != "9" and text[:3] not in ("000", "666") and text[3:5] != "00" and text[5:] != "0000"
    return bool(text) and fits and text not in withdrawn


def itin(value: str, _argument: str) -> bool:
    """Check a US ITIN: begins with 9, its group is 50-65, 70-88, 90-92 or 94-99 (IRS)."""
    numbers = numbers_of(value, (9,))
    if not numbers or numbers[0] != 9:
        return False
    group = pair_at(numbers, 3)
    return 50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 92 or 94 <= group <= 99


def ein(value: str, _argument: str) -> bool:
    """Check that a US employer number begins with a prefix the IRS assigns."""
    numbers = numbers_of(value, (9,))
    return bool(numbers) and pair_at(numbers, 0) not in (0, 7, 8, 9, 17, 18, 19, 28, 29, 49, 69, 70, 78, 79, 89, 96, 97)


def npi(value: str, _argument: str) -> bool:
    """Check a US provider number: Luhn over 80840 and the ten digits (CMS)."""
    numbers = numbers_of(value, (10,))
    return bool(numbers) and numbers[0] in (1, 2) and luhn_holds([8, 0, 8, 4, 0, *numbers])


def dea(value: str, _argument: str) -> bool:
    """Check a US DEA number: two letters, seven digits, the last that of (1+3+5) + 2(2+4+6)."""
    text = plain(value)
    numbers = numbers_of(text[2:], (7,))
    fits = len(text) == 9 and text[0].isalpha() and bool(numbers)
    return fits and (sum(numbers[0:6:2]) + 2 * sum(numbers[1:6:2])) % 10 == numbers[6]


def medicare_us(value: str, _argument: str) -> bool:
    """Check the places of letters and digits of a US Medicare number (CMS, MBI format)."""
    text = plain(value)
    kinds = ("123456789", "A", "AN", "N", "A", "AN", "N", "A", "A", "N", "N")
    letters = frozenset(LETTERS) - frozenset("SLOIBZ")
    return len(text) == 11 and all(
        (char in letters and "A" in kind) or (char in DIGITS and ("N" in kind or char in kind))
        for char, kind in zip(text, kinds, strict=True)
    )


def steuer_id(value: str, _argument: str) -> bool:
    """Check a German tax id: ISO 7064 mod 11,10, one digit twice or thrice among the first ten (BZSt)."""
    numbers = numbers_of(value, (11,))
    if not numbers or numbers[0] == 0 or len(set(numbers[:10])) not in (8, 9):
        return False
    return mod11_10_holds(numbers)


def oib(value: str, _argument: str) -> bool:
    """Check a Croatian OIB: eleven digits, ISO 7064 mod 11,10."""
    numbers = numbers_of(value, (11,))
    return bool(numbers) and mod11_10_holds(numbers)


def german_pension(value: str, _argument: str) -> bool:
    """Check a German pension number: area, date, initial, serial, check digit (VKVV)."""
    text = plain(value)
    if len(text) != 12 or not (text[:8] + text[9:]).isdigit() or not text[8].isalpha():
        return False
    spread = [int(char) for char in text[:8] + f"{ord(text[8]) - 64:02d}" + text[9:]]
    total = sum(sum(divmod(a * b, 10)) for a, b in zip(spread, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=False))
    return begins_with_date(spread[2:], True) and total % 10 == spread[-1]


def nir(value: str, _argument: str) -> bool:
    """Check a French NIR: 13 places and 97 minus their remainder by 97; 2A and 2B stand for 19 and 18 (INSEE)."""
    text = plain(value).replace("2A", "19", 1).replace("2B", "18", 1)
    if len(text) != 15 or not text.isdigit() or text[0] not in "123478":
        return False
    month = int(text[3:5])
    return (1 <= month <= 12 or 20 <= month <= 42 or month >= 50) and 97 - int(text[:13]) % 97 == int(text[13:])


def dni(value: str, _argument: str) -> bool:
    """Check a Spanish DNI or NIE: the letter of the number's remainder by 23 (Ministry of the Interior)."""
    text = plain(value)
    if text[:1] in ("X", "Y", "Z"):
        text = str("XYZ".index(text[0])) + text[1:]
    fits = len(text) == 9 and text[:8].isdigit() and len(set(text[:8])) > 1
    return fits and "TRWAGMYFPDXBNJZSQVHLCKE"[int(text[:8]) % 23] == text[8]


def codice_fiscale(value: str, _argument: str) -> bool:
    """Check an Italian tax code: sixteen places, the last from odd and even values mod 26 (decree of 1974)."""
    text = plain(value)
    if len(text) != 16 or not text[:6].isalpha() or text[8] not in "ABCDEHLMPRST":
        return False
    even = sum(int(char) if char in DIGITS else LETTERS.index(char) for char in text[1:15:2])
    return LETTERS[(even + sum(_ITALIAN_ODD[char] for char in text[0:15:2])) % 26] == text[15]


def nino(value: str, _argument: str) -> bool:
    """Check a UK National Insurance number: the prefixes that HMRC does not use are refused."""
    text = plain(value)
    fits = len(text) == 9 and text[:2].isalpha() and text[2:8].isdigit() and text[8] in "ABCD"
    unused = text[:2] in ("BG", "GB", "NK", "KN", "TN", "NT", "ZZ") or text[:1] in tuple("DFIQUV")
    return fits and not unused and text[1] not in "DFIQUVO" and len(set(text[2:8])) > 1


def belgian(value: str, _argument: str) -> bool:
    """Check a Belgian register number: 97 minus the first nine by 97, with a 2 before them from the year 2000 on."""
    numbers = numbers_of(value, (11,))
    text = "".join(map(str, numbers))
    if not numbers or pair_at(numbers, 2) % 20 > 12 or pair_at(numbers, 4) > 31:
        return False
    return any(97 - int(century + text[:9]) % 97 == int(text[9:]) for century in ("", "2"))


def norwegian(value: str, _argument: str) -> bool:
    """Check a Norwegian birth number: two check digits mod 11 after day, month, year and serial."""
    numbers = numbers_of(value, (11,))
    if not numbers or not (1 <= pair_at(numbers, 0) % 40 <= 31 and 1 <= pair_at(numbers, 2) % 40 <= 12):
        return False
    first = dot(numbers, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) % 11 == 0
    return first and dot(numbers, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def finnish(value: str, _argument: str) -> bool:
    """Check a Finnish personal identity code: date, sign of the century, the character of the remainder by 31 (DVV)."""
    text = value.strip().upper()
    digits = text[:6] + text[7:10]
    if len(text) != 11 or not (digits.isascii() and digits.isdigit()) or text[6] not in "+-ABCDEFYXWVU":
        return False
    is_date = begins_with_date([int(char) for char in digits], True)
    return is_date and "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(digits) % 31] == text[10]


def swedish(value: str, _argument: str) -> bool:
    """Check a Swedish personal number: a date (60 more for coordination numbers) and Luhn over ten digits."""
    numbers = numbers_of(value, (10, 12))[-10:]
    fits = bool(numbers) and 1 <= pair_at(numbers, 2) <= 12 and 1 <= pair_at(numbers, 4) % 60 <= 31
    return fits and luhn_holds(numbers)


def danish(value: str, _argument: str) -> bool:
    """Check a Danish CPR number: its date. Its check digit is no longer kept for numbers since 2007."""
    numbers = numbers_of(value, (10,))
    return bool(numbers) and begins_with_date(numbers, True)


def czech(value: str, _argument: str) -> bool:
    """Check a Czech or Slovak birth number: a date (50 or 20 more for the month), divisible by 11."""
    numbers = numbers_of(value, (10,))
    fits = bool(numbers) and 1 <= pair_at(numbers, 2) % 50 % 20 <= 12 and 1 <= pair_at(numbers, 4) <= 31
    return fits and int("".join(map(str, numbers))) % 11 == 0


def baltic(value: str, _argument: str) -> bool:
    """Check an Estonian or Lithuanian personal code: date, check digit mod 11 in two rounds."""
    numbers = numbers_of(value, (11,))
    if not numbers or not 1 <= numbers[0] <= 8 or not begins_with_date(numbers[1:]):
        return False
    for weights in ((1, 2, 3, 4, 5, 6, 7, 8, 9, 1), (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)):
        remainder = dot(numbers[:10], weights) % 11
        if remainder < 10:
            return remainder == numbers[10]
    return numbers[10] == 0


def irish(value: str, _argument: str) -> bool:
    """Check an Irish PPS number: seven digits, a letter mod 23, perhaps a second letter."""
    text = plain(value)
    if len(text) not in (8, 9) or not text[:7].isdigit() or len(set(text[:7])) == 1:
        return False
    extra = 9 * (ord(text[8]) - 64) if len(text) == 9 and text[8] != "W" else 0
    total = dot([int(char) for char in text[:7]], range(8, 1, -1)) + extra
    return "WABCDEFGHIJKLMNOPQRSTUV"[total % 23] == text[7]


def turkish(value: str, _argument: str) -> bool:
    """Check a Turkish identity number: its tenth and eleventh digits."""
    numbers = numbers_of(value, (11,))
    if not numbers or numbers[0] == 0:
        return False
    tenth = (7 * sum(numbers[0:9:2]) - sum(numbers[1:8:2])) % 10
    return tenth == numbers[9] and sum(numbers[:10]) % 10 == numbers[10]


def russian_tax(value: str, _argument: str) -> bool:
    """Check a Russian INN of a person: twelve digits, two check digits mod 11 mod 10."""
    numbers = numbers_of(value, (12,))
    rounds = ((10, (7, 2, 4, 10, 3, 5, 9, 4, 6, 8)), (11, (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)))
    return bool(numbers) and all(dot(numbers[:at], weights) % 11 % 10 == numbers[at] for at, weights in rounds)


def snils(value: str, _argument: str) -> bool:
    """Check a Russian SNILS: nine digits and their weighted sum mod 101 mod 100."""
    numbers = numbers_of(value, (11,))
    return bool(numbers) and dot(numbers[:9], range(9, 0, -1)) % 101 % 100 == pair_at(numbers, 9)


def cpf(value: str, _argument: str) -> bool:
    """Check a Brazilian CPF: two check digits mod 11 (Receita Federal)."""
    numbers = numbers_of(value, (11,))
    rounds = ((9, range(10, 1, -1)), (10, range(11, 1, -1)))
    return bool(numbers) and all(dot(numbers, weights) * 10 % 11 % 10 == numbers[at] for at, weights in rounds)


def cnpj(value: str, _argument: str) -> bool:
    """Check a Brazilian CNPJ: two check digits mod 11 (Receita Federal)."""
    numbers = numbers_of(value, (14,))
    weights = (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
    return bool(numbers) and all(-dot(numbers, weights[13 - at :]) % 11 % 10 == numbers[at] for at in (12, 13))


def rut(value: str, _argument: str) -> bool:
    """Check a Chilean RUT: mod 11 with weights 2 to 7 from the right, K for ten."""
    text = plain(value)
    if not 8 <= len(text) <= 9 or not text[:-1].isdigit() or len(set(text[:-1])) == 1:
        return False
    total = dot([int(char) for char in reversed(text[:-1])], (2, 3, 4, 5, 6, 7, 2, 3))
    return "0K987654321"[total % 11] == text[-1]


def curp(value: str, _argument: str) -> bool:
    """Check a Mexican CURP: eighteen places, a date, the last digit from values over 37 characters (RENAPO)."""
    text = plain(value)
    if len(text) != 18 or not text[4:10].isdigit() or not begins_with_date([int(char) for char in text[4:10]]):
        return False
    worth = {char: place for place, char in enumerate("0123456789ABCDEFGHIJKLMN\0OPQRSTUVWXYZ")}
    return str(-dot([worth[char] for char in text[:17]], range(18, 1, -1)) % 10) == text[17]


def ecuadorian(value: str, _argument: str) -> bool:
    """Check an Ecuadorian cedula: a province, a person's third digit, Luhn."""
    numbers = numbers_of(value, (10,))
    return bool(numbers) and 1 <= pair_at(numbers, 0) <= 24 and numbers[2] < 6 and luhn_holds(numbers)


def pan(value: str, _argument: str) -> bool:
    """Check an Indian PAN: five letters of which the fourth names the kind of holder, four digits, a letter."""
    text = plain(value)
    fits = len(text) == 10 and text[:5].isalpha() and text[5:9].isdigit() and text[9].isalpha()
    return fits and text[3] in "ABCFGHJLPT" and text[:5] not in ("ABCDE", "ABCPE") and text[5:9] != "0000"


def chinese(value: str, _argument: str) -> bool:
    """Check a Chinese resident number: a date, ISO 7064 mod 11-2 (GB 11643-1999)."""
    text = plain(value)
    if len(text) != 18 or not text[:17].isdigit() or text[0] in "089" or text[6:8] not in ("19", "20"):
        return False
    numbers = [int(char) for char in text[:17]]
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return begins_with_date(numbers[8:]) and "10X98765432"[dot(numbers, weights) % 11] == text[17]


def hong_kong(value: str, _argument: str) -> bool:
    """Check a Hong Kong identity card number: one or two letters, six digits, check digit or A mod 11."""
    text = plain(value)
    letters, body, last = text[:-7], text[-7:-1], text[-1:]
    if not 1 <= len(letters) <= 2 or not letters.isalpha() or not body.isdigit() or last not in tuple("0123456789A"):
        return False
    head = [36, *(ord(char) - 55 for char in letters)][-2:]
    return dot([*head, *map(int, body), int(last, 11)], (9, 8, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def taiwanese(value: str, _argument: str) -> bool:
    """Check a Taiwanese identity number: a letter and nine digits, mod 10."""
    text = plain(value)
    if len(text) != 10 or text[0] not in _TAIWAN_PLACES or not text[1:].isdigit() or text[1] not in "1289":
        return False
    place = _TAIWAN_PLACES.index(text[0]) + 10
    return (place // 10 + dot([place % 10, *map(int, text[1:])], (9, 8, 7, 6, 5, 4, 3, 2, 1, 1))) % 10 == 0


def singaporean(value: str, _argument: str) -> bool:
    """Check a Singaporean NRIC or FIN: S, T, F, G or M, seven digits, a letter mod 11."""
    text = plain(value)
    if len(text) != 9 or text[0] not in "STFGM" or not text[1:8].isdigit() or len(set(text[1:8])) == 1:
        return False
    total = dot([int(char) for char in text[1:8]], (2, 7, 6, 5, 4, 3, 2)) + {"T": 4, "G": 4, "M": 3}.get(text[0], 0)
    table = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "XWUTRQPNJLK"}.get(text[0], "XWUTRQPNMLK")
    return table[total % 11] == text[8]


def korean(value: str, _argument: str) -> bool:
    """Check a Korean resident number: date and sex digit. Its check digit is no longer kept since October 2020."""
    numbers = numbers_of(value, (13,))
    if not numbers or not begins_with_date(numbers):
        return False
    old = (11 - dot(numbers[:12], (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10 == numbers[12]
    return old or (numbers[6] in (3, 4, 7, 8) and pair_at(numbers, 0) >= 20)


def japanese(value: str, _argument: str) -> bool:
    """Check a Japanese My Number: twelve digits, mod 11 with weights 2 to 7 (ordinance 85 of 2014)."""
    numbers = numbers_of(value, (12,))
    remainder = dot(numbers[:11][::-1], (2, 3, 4, 5, 6, 7, 2, 3, 4, 5, 6)) % 11
    return bool(numbers) and (0 if remainder <= 1 else 11 - remainder) == numbers[11]


def dated(value: str, argument: str) -> bool:
    """Check a number that only carries a date: `argument` is its length and `ymd` or `dmy` with the date's place."""
    length, order, at = argument.split("/")
    numbers = numbers_of(value, (int(length),))[int(at) :]
    if order == "dmy" and numbers and numbers[0] >= 4:
        numbers = [numbers[0] - 4, *numbers[1:]]  # an Indonesian woman's day carries 40
    return bool(numbers) and begins_with_date(numbers, order == "dmy")


def australian_medicare(value: str, _argument: str) -> bool:
    """Check an Australian Medicare number: begins with 2 to 6, its ninth digit is a weighted sum mod 10."""
    numbers = numbers_of(value, (10, 11))
    return bool(numbers) and 2 <= numbers[0] <= 6 and dot(numbers, (1, 3, 7, 9) * 2) % 10 == numbers[8]


def icelandic(value: str, _argument: str) -> bool:
    """Check an Icelandic kennitala: a date, the ninth digit mod 11, the century in the tenth."""
    numbers = numbers_of(value, (10,))
    fits = bool(numbers) and numbers[9] in (0, 8, 9) and begins_with_date([numbers[0] % 4, *numbers[1:]], True)
    return fits and -dot(numbers, (3, 2, 7, 6, 5, 4, 3, 2)) % 11 == numbers[8]


def austrian(value: str, _argument: str) -> bool:
    """Check an Austrian insurance number: serial, check digit mod 11 in the fourth place, date."""
    numbers = numbers_of(value, (10,))
    fits = bool(numbers) and numbers[0] > 0 and begins_with_date(numbers[4:], True)
    return fits and dot(numbers, (3, 7, 9, 0, 5, 8, 4, 2, 1, 6)) % 11 == numbers[3]


def australian_business(value: str, _argument: str) -> bool:
    """Check an Australian business number: one less in the first digit, weighted sum divisible by 89."""
    numbers = numbers_of(value, (11,))
    weights = (10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
    return bool(numbers) and (dot(numbers, weights) - 10) % 89 == 0


_TO_NOUGHT = {10: 0}
ID_VALIDATORS: Mapping[str, Check] = {
    "ssn": ssn, "itin": itin, "ein": ein, "npi": npi, "dea": dea, "mbi": medicare_us,
    "de-tax": steuer_id, "de-pension": german_pension, "fr-nir": nir, "es-dni": dni,
    "it-tax": codice_fiscale, "gb-nino": nino, "be-nrn": belgian, "no-fnr": norwegian, "fi-hetu": finnish,
    "se-pnr": swedish, "dk-cpr": danish, "cz-rc": czech, "ee-ik": baltic, "ie-pps": irish, "tr-tckn": turkish,
    "ru-inn": russian_tax, "ru-snils": snils, "br-cpf": cpf, "br-cnpj": cnpj, "cl-rut": rut, "mx-curp": curp,
    "ec-cedula": ecuadorian, "in-pan": pan, "cn-id": chinese, "hk-id": hong_kong, "tw-id": taiwanese,
    "sg-nric": singaporean, "kr-rrn": korean, "jp-my-number": japanese, "dated": dated, "hr-oib": oib,
    "au-abn": australian_business, "is-kt": icelandic, "at-svnr": austrian, "au-medicare": australian_medicare,
    "ca-sin": luhn_of(9, "12345679"),
    "za-id": luhn_of(13, DIGITS, date_at=0),
    "gr-amka": dated_check(11, luhn_of(11, DIGITS), day_first=True),
    "do-cedula": luhn_of(11, DIGITS),
    "il-id": luhn_of(9, "0123"),
    "ae-id": luhn_of(15, "7"),
    "sa-id": luhn_of(10, "12"),
    "gb-nhs": weighted(10, range(-10, -1), 11),
    "nl-bsn": weighted(9, range(9, 1, -1), 11),
    "pl-pesel": dated_check(11, weighted(11, (9, 7, 3, 1) * 2 + (9, 7), 10)),
    "pl-nip": weighted(10, (6, 5, 7, 2, 3, 4, 5, 6, 7), 11),
    "pt-nif": weighted(9, range(-9, -1), 11, _TO_NOUGHT),
    "ro-cnp": weighted(13, (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9), 11, {10: 1}),
    "bg-egn": dated_check(10, weighted(10, (2, 4, 8, 5, 10, 9, 7, 3, 6), 11, _TO_NOUGHT)),
    "rs-jmbg": weighted(13, (-7, -6, -5, -4, -3, -2) * 2, 11, _TO_NOUGHT),
    "hu-taj": weighted(9, (3, 7) * 4, 10),
    "ch-ahv": weighted(13, (-1, -3) * 6, 10),
    "ua-rnokpp": weighted(10, (-1, 5, 7, 9, 4, 6, 10, 5, 7), 11, _TO_NOUGHT),
    "ar-cuit": weighted(11, (-5, -4, -3, -2, -7, -6, -5, -4, -3, -2), 11, {10: 9}),
    "uy-ci": weighted(8, (-2, -9, -8, -7, -6, -3, -4), 10),
    "th-id": weighted(13, range(-13, -1), 11, {0: 1, 10: 0}),
    "au-tfn": weighted(9, (1, 4, 3, 7, 5, 8, 6, 9), 11),
}  # fmt: skip
