"""Checks of numbers that no row of the table can say: one function a number. Pure; knows no context word.

Each takes a number whose form is right, and says whether its check digits are. The algorithms are the issuing offices',
as collected in the python-stdnum documentation, where no source is named.
"""

import re

from gateway.shield.check_digits import ALNUM, DIGITS, Holds, date, dot, luhn_holds, padded, weighted

_TEN = "01234567890"
_TWELVE = "11234567890"
_TAIWAN = "ABCDEFGHJKLMNPQRSTUVXYWZIO"  # A is 10, B is 11 … in this order
_NRIC = {"S": (0, "JZIHGFEDCBA"), "T": (4, "JZIHGFEDCBA"), "F": (0, "XWUTRQPNMLK"), "G": (4, "XWUTRQPNMLK")}
_NRIC["M"] = (3, "XWUTRQPNJLK")


def letter_at(signs: str) -> Holds:
    """Hold if the last character is the one of `signs` at the remainder of the number before it."""
    return lambda number: signs[int(number[:-1]) % len(signs)] == number[-1]


def nie(number: str) -> bool:
    """X, Y and Z before a Spanish number count as 0, 1 and 2."""
    first = str("XYZ".find(number[0])) if number[0] in "XYZ" else number[0]
    return letter_at("TRWAGMYFPDXBNJZSQVHLCKE")(first + number[1:])


def belgian(number: str) -> bool:
    """97 less the remainder of the first nine by 97, with a 2 before them from the year 2000 on."""
    return any(97 - int(early + number[:9]) % 97 == int(number[9:]) for early in ("", "2"))


def snils(number: str) -> bool:
    """Weights 9 to 1, by 101 and by 100."""
    return dot([int(char) for char in number[:9]], range(9, 0, -1)) % 101 % 100 == int(number[9:])


def venezuelan(number: str) -> bool:
    """A letter that counts, weights 3 2 7 6 5 4 3 2, by 11 (SENIAT)."""
    plus = {"V": 4, "E": 8, "J": 12, "P": 16, "G": 20}[number[0]]
    return weighted((0, 3, 2, 7, 6, 5, 4, 3, 2), 11, "00987654321", plus=plus)(number)


def dominican(number: str) -> bool:
    """Weights 7 9 8 6 5 4 3 2 by 11, then by 9 (DGII)."""
    return (10 - dot([int(char) for char in number], (7, 9, 8, 6, 5, 4, 3, 2)) % 11) % 9 + 1 == int(number[8])


def french_firm(number: str) -> bool:
    """A key before a number with a Luhn digit; a key with a letter is not checked."""
    is_old = number[:2].isdigit()
    return luhn_holds(number[2:]) and (not is_old or (12 + 3 * (int(number[2:]) % 97)) % 97 == int(number[:2]))


def dutch_firm(number: str) -> bool:
    """The number of a person, or the whole by 97 with the country before it (2020)."""
    spread = "".join(str(int(char, 36)) for char in "NL" + number)
    return weighted(range(9, 1, -1), 11, DIGITS, at=8)(number[:9]) or int(spread) % 97 == 1


def austrian_firm(number: str) -> bool:
    """Luhn's way and four more."""
    return -(4 + sum(sum(divmod(int(c) * (1 + i % 2), 10)) for i, c in enumerate(number[:7]))) % 10 == int(number[7])


def thirteen(number: str) -> bool:
    """Russia: the remainder by 11 and by 10. Japan: 9 less the weighted sum by 9, in the first digit."""
    japanese = 9 - dot([int(char) for char in number[1:]], (2, 1) * 6) % 9
    return int(number[:12]) % 11 % 10 == int(number[12]) or japanese == int(number[0])


def nir(number: str) -> bool:
    """97 less the remainder of 13 places; 2A and 2B of Corsica stand for 19 and 18 (INSEE)."""
    return 97 - int(number[:13].replace("2A", "19").replace("2B", "18")) % 97 == int(number[13:])


def codice_fiscale(number: str) -> bool:
    """Even places count as they are, odd ones by a table (decree of 12 March 1974)."""
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
    worth = [int(char) if char.isdigit() else ord(char) - 65 for char in number]
    return chr(65 + sum(one if place % 2 else odd[one] for place, one in enumerate(worth[:15])) % 26) == number[15]


def cypriot(number: str) -> bool:
    """Odd places by a table, even ones as they are, a letter by 26."""
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
    total = sum(int(char) if place % 2 else odd[int(char)] for place, char in enumerate(number[:8]))
    return chr(65 + total % 26) == number[8]


def irish(number: str) -> bool:
    """Weights 8 to 2, and nine times a second letter that is not W, by 23."""
    extra = 9 * (ord(number[8]) - 64) if number[8:] not in ("", "W") else 0
    return weighted(range(8, 1, -1), 23, "WABCDEFGHIJKLMNOPQRSTUV", at=7, plus=extra)(number[:8])


def cif(number: str) -> bool:
    """Luhn over seven digits, written as a digit or as its letter."""
    last = str("JABCDEFGHI".index(number[8])) if number[8] in "JABCDEFGHI" else number[8]
    return luhn_holds(number[1:8] + last)


def taiwanese(number: str) -> bool:
    """A letter counts as two digits; weights 1 9 8 … 1 1."""
    code = _TAIWAN.index(number[0]) + 10
    return (code // 10 + dot([code % 10, *map(int, number[1:])], (9, 8, 7, 6, 5, 4, 3, 2, 1, 1))) % 10 == 0


def singaporean(number: str) -> bool:
    """Weights 2 7 6 5 4 3 2, more for some letters, a letter by 11."""
    plus, signs = _NRIC[number[0]]
    return weighted((0, 2, 7, 6, 5, 4, 3, 2), 11, signs, plus=plus)(number)


def korean(number: str) -> bool:
    """Weights by 11. The check digit is no longer kept since October 2020."""
    is_new = number[6] in "3478" and number[:2] >= "20"
    return is_new or weighted((-2, -3, -4, -5, -6, -7, -8, -9, -2, -3, -4, -5), 11, _TWELVE)(number)


def korean_firm(number: str) -> bool:
    """Weights 1 3 7, and a carry from the ninth digit."""
    return weighted((-1, -3, -7, -1, -3, -7, -1, -3, -5), 10, plus=-(int(number[8]) * 5 // 10))(number)


def turkish_firm(number: str) -> bool:
    """Each digit is shifted by its place and doubled as often (GIB)."""
    shifted = [(int(char) + 9 - place) % 10 for place, char in enumerate(number[:9])]
    total = sum(one and (one * pow(2, 9 - place, 9) % 9 or 9) for place, one in enumerate(shifted))
    return -total % 10 == int(number[9])


def taiwanese_firm(number: str) -> bool:
    """Weights 1 2 1 2 1 2 4 1, digit sums, by 5 (rule of 2023)."""
    pairs = zip(map(int, number), (1, 2, 1, 2, 1, 2, 4, 1), strict=True)
    total = sum(sum(divmod(one * weight, 10)) for one, weight in pairs)
    return total % 5 == 0 or (number[6] == "7" and (total + 1) % 5 == 0)


def gstin(number: str) -> bool:
    """Luhn's way over 36 characters (GSTN)."""
    total = sum(sum(divmod(ALNUM.index(char) * (1 + place % 2), 36)) for place, char in enumerate(number[:14]))
    return ALNUM[-total % 36] == number[14]


def new_zealand_health(number: str) -> bool:
    """Letters without I and O count from 1; weights 7 to 2; a digit by 11 or a letter by 23."""
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"
    worth = [int(char) if char in DIGITS else letters.index(char) + 1 for char in number[:6]]
    total = dot(worth, range(7, 1, -1))
    if number[6] in DIGITS:
        return total % 11 != 0 and (11 - total % 11) % 10 == int(number[6])
    return number[6] == letters[22 - total % 23]


def new_zealand_tax(number: str) -> bool:
    """Weights by 11, and other weights where that gives 10."""
    first = -dot([int(char) for char in number], (3, 2, 7, 6, 5, 4, 3, 2)) % 11
    second = weighted((-7, -4, -3, -2, -5, -2, -7, -6), 11, DIGITS)
    return second(number) if first == 10 else str(first) == number[8]


def spanish_insurance(number: str) -> bool:
    """Province and serial as one number, its remainder by 97."""
    province, serial = int(number[:2]), int(number[2:-2])
    joined = province * 10_000_000 + serial if serial < 10_000_000 else int(number[:-2])
    return joined % 97 == int(number[-2:])


def brazilian_licence(number: str) -> bool:
    """Two check digits by 11; the first may take two from the second (CNH)."""
    numbers = [int(char) for char in number]
    first, second = (dot(numbers[:9], weights) % 11 for weights in (range(9, 0, -1), range(1, 10)))
    second = 0 if second >= 10 else (second - 2 * (first >= 10)) % 11
    return [first if first < 10 else 0, second] == numbers[9:]


def hong_kong(number: str) -> bool:
    """A blank before one letter counts 36; weights 9 to 1, A is ten."""
    head = [36, *(ord(char) - 55 for char in number[:-7])][-2:]
    return dot([*head, *(int(char, 11) for char in number[-7:])], range(9, 0, -1)) % 11 == 0


def finnish(value: str, _argument: str) -> bool:
    """Check a Finnish personal identity code: date, sign of the century, the character of the remainder by 31 (DVV)."""
    number = value.strip().upper()
    if not re.fullmatch(r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]", number):
        return False
    return (
        date(0, "dmy")(number) and "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(number[:6] + number[7:10]) % 31] == number[10]
    )


def card_of_portugal(number: str) -> bool:
    """Luhn over letters that count as one value."""
    values = [int(char, 36) * (1 + place % 2) for place, char in enumerate(reversed(number))]
    return sum(one - 9 if one > 9 and place % 2 else one for place, one in enumerate(values)) % 10 == 0


def romanian_firm(number: str) -> bool:
    """Weights 7 5 3 2 1 7 5 3 2 from the right, times ten, by 11."""
    return padded(10, weighted((-7, -5, -3, -2, -1, -7, -5, -3, -2), 11, _TEN))(number)
