"""Numbers of people and firms with valid check digits: what the generator of numbers draws from.

Each check is written down here from the public description of the number, apart from the shield's own checks, so that
one tests the other. In a form, `#` is any digit, `1` a digit that is not 0, `@` a letter, `D` a day as DDMMYY, `Y` one
as YYMMDD, `L` one as YYYYMMDD; `!` in front of a character means that character, and `|` parts forms to choose from.
"""

from collections.abc import Callable, Sequence
from random import Random

Make = Callable[[Random], str]
LETTERS = "ACDEFGHJKMNPRTUWXY"
_BASE36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def fill(form: str, choice: Random) -> str:
    """Fill a form in."""
    year, month, day = choice.randint(1946, 1999), choice.randint(1, 12), choice.randint(1, 28)
    days = {"D": f"{day:02}{month:02}{year % 100:02}", "Y": f"{year % 100:02}{month:02}{day:02}"}
    days["L"] = f"{year}{month:02}{day:02}"
    text, is_literal = "", False
    for sign in choice.choice(form.split("|")):
        if is_literal or sign == "!":
            text += sign if is_literal else ""
            is_literal = not is_literal
        elif sign == "#":
            text += choice.choice("0123456789")
        elif sign == "1":
            text += choice.choice("123456789")
        elif sign == "@":
            text += choice.choice(LETTERS)
        else:
            text += days.get(sign, sign)
    return text


def plain(form: str) -> Make:
    """Make numbers without a check digit."""
    return lambda choice: fill(form, choice)


def checked(form: str, check: Callable[[str], str | None]) -> Make:
    """Make numbers whose last characters are found from those before; None means to try others."""

    def make(choice: Random) -> str:
        while True:
            body = fill(form, choice)
            end = check(body)
            if end is not None:
                return body + end

    return make


def total(text: str, weights: Sequence[int]) -> int:
    """Add up values of characters times weights; weights repeat."""
    return sum(int(sign, 36) * weights[i % len(weights)] for i, sign in enumerate(text))


def down(weights: Sequence[int], modulus: int = 11, table: str = "") -> Callable[[str], str | None]:
    """Return the check digit that brings the weighted sum to a multiple; `table` maps it, a blank refuses."""
    signs = table or "0123456789 "

    def check(text: str) -> str | None:
        sign = signs[-total(text, weights) % modulus]
        return None if sign == " " else sign

    return check


def rest(weights: Sequence[int], modulus: int = 11, table: str = "") -> Callable[[str], str | None]:
    """Return the rest of the weighted sum as the check digit; `table` maps it, a blank refuses."""
    signs = table or "0123456789 "

    def check(text: str) -> str | None:
        sign = signs[total(text, weights) % modulus]
        return None if sign == " " else sign

    return check


def both(*checks: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """Append several check digits, each over all that stands before it."""

    def check(text: str) -> str | None:
        end = ""
        for one in checks:
            more = one(text + end)
            if more is None:
                return None
            end += more
        return end

    return check


def luhn(text: str) -> str:
    """ISO/IEC 7812-1; letters count as two digits."""
    digits = "".join(str(int(sign, 36)) for sign in text)
    summed = 0
    for i, sign in enumerate(reversed(digits)):
        summed += sum(divmod(int(sign) * (2 if i % 2 == 0 else 1), 10))
    return str(-summed % 10)


def iso_11_10(text: str) -> str:
    """ISO/IEC 7064, MOD 11,10."""
    product = 10
    for sign in text:
        product = ((int(sign) + product) % 10 or 10) * 2 % 11
    return str((11 - product) % 10)


_D5 = "0123456789 1234067895 2340178956 3401289567 4012395678"
_D5 += " 5987604321 6598710432 7659821043 8765932104 9876543210"
_PERMUTED = "1576283094"


def verhoeff(text: str) -> str:
    """The dihedral check of J. Verhoeff."""
    state = 0
    for i, sign in enumerate(reversed(text), 1):
        value = int(sign)
        for _ in range(i % 8):
            value = int(_PERMUTED[value])
        state = int(_D5[state * 11 + value])
    return str(next(digit for digit in range(10) if _D5[state * 11 + digit] == "0"))


def mod97(text: str) -> str:
    """97 less the rest of the number: Belgium, and France with letters as they stand."""
    return f"{97 - int(text) % 97:02}"


def iban(country: str, form: str) -> Make:
    """ISO 13616 with check digits by ISO/IEC 7064, MOD 97-10."""

    def make(choice: Random) -> str:
        body = fill(form, choice)
        number = int("".join(str(int(sign, 36)) for sign in body + country + "00"))
        return f"{country}{98 - number % 97:02}{body}"

    return make


def codice_fiscale(choice: Random) -> str:
    """Italy: 15 characters and a letter from a table of odd places and the plain order of even places."""
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
    body = "".join(choice.choice("BCDFGLMNPRSTV") for _ in range(6)) + f"{choice.randint(46, 99)}"
    body += choice.choice("ABCDEHLMPRST") + f"{choice.randint(1, 28) + choice.choice((0, 40)):02}"
    body += choice.choice("FHLAGD") + f"{choice.randint(100, 999)}"
    value = [int(sign) if sign.isdigit() else ord(sign) - 65 for sign in body]
    return body + chr(65 + sum(odd[v] if i % 2 == 0 else v for i, v in enumerate(value)) % 26)


def curp(choice: Random) -> str:
    """Mexico: 17 characters weighed 18 to 2 in an alphabet with Ñ."""
    alphabet = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
    body = fill("@!A@@Y", choice).replace("Q", "R") + choice.choice("HM") + choice.choice(("DF", "JC", "NL", "PL"))
    body += "".join(choice.choice("BCDFGLMNPRST") for _ in range(3)) + choice.choice("0123456789")
    return body + str(-sum(alphabet.index(sign) * (18 - i) for i, sign in enumerate(body)) % 10)


def steuer_id(choice: Random) -> str:
    """Germany: ten digits of which one stands twice and one is missing, then MOD 11,10."""
    digits = choice.sample("0123456789", 9)
    digits.append(choice.choice(digits))
    choice.shuffle(digits)
    while digits[0] == "0":
        choice.shuffle(digits)
    body = "".join(digits)
    return body + iso_11_10(body)


def letter_of(alphabet: str) -> Callable[[str], str]:
    """Return the letter at the rest of the number."""
    return lambda text: alphabet[int(text) % len(alphabet)]


def tckn(text: str) -> str:
    """Turkey: two check digits over nine."""
    digits = [int(sign) for sign in text]
    tenth = (7 * sum(digits[::2]) - sum(digits[1::2])) % 10
    return f"{tenth}{(sum(digits) + tenth) % 10}"


def snils(text: str) -> str:
    """Russia: nine digits weighed 9 to 1."""
    return f"{total(text, range(9, 0, -1)) % 101 % 100:02}"


def rodne_cislo(text: str) -> str | None:
    """Czechia and Slovakia: the whole number is a multiple of 11."""
    check = -int(text + "0") % 11
    return None if check == 10 else str(check)


def digit_sums(weights: Sequence[int]) -> Callable[[str], str]:
    """Return the last digit of the sum of the digits of all products: Germany; letters count as two digits."""

    def check(text: str) -> str:
        digits = "".join(sign if sign.isdigit() else f"{ord(sign) - 64:02}" for sign in text)
        return str(sum(sum(divmod(int(d) * weights[i % len(weights)], 10)) for i, d in enumerate(digits)) % 10)

    return check


def cartao(text: str) -> str:
    """Portugal: Luhn with letters as one value."""
    values = [int(sign, 36) * (2 if i % 2 == 0 else 1) for i, sign in enumerate(reversed(text))]
    return str(-sum(v - 9 if v > 9 and i % 2 == 0 else v for i, v in enumerate(values)) % 10)


def btw(text: str) -> str:
    """Netherlands: all characters as a number leave 1 by 97."""
    number = int("".join(str(int(sign, 36)) for sign in text + "00"))
    return f"{(1 - number) % 97:02}"


def abn(choice: Random) -> str:
    """Australia: two check digits in front, modulus 89."""
    body = fill("#########", choice)
    summed = total(body, range(3, 20, 2))
    return next(f"{n}" for n in range(10, 99) if ((n // 10 - 1) * 10 + n % 10 + summed) % 89 == 0) + body


def vkn(text: str) -> str:
    """Turkey, firms: each digit moved by its place, times a power of two, by nine."""
    moved = [(int(sign) + 9 - i) % 10 for i, sign in enumerate(text)]
    return str(-sum(9 if v == 9 else v * 2 ** (9 - i) % 9 for i, v in enumerate(moved)) % 10)


def brn(text: str) -> str:
    """South Korea, firms: weights, and the tens of the last product."""
    return str(-(total(text, (1, 3, 7, 1, 3, 7, 1, 3, 5)) + int(text[8]) * 5 // 10) % 10)


def taiwan(text: str) -> str:
    """Taiwan: the first letter counts as two digits."""
    code = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(text[0]) + 10
    return str(-(code // 10 + total(str(code % 10) + text[1:], range(9, 0, -1))) % 10)


def uscc(text: str) -> str:
    """China, firms: powers of three in an alphabet of 31."""
    alphabet = "0123456789ABCDEFGHJKLMNPQRTUWXY"
    return alphabet[-sum(alphabet.index(sign) * 3**i for i, sign in enumerate(text)) % 31]


def rfc(text: str) -> str:
    """Mexico: weights 13 to 2 in an alphabet with & and Ñ."""
    alphabet = "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ Ñ"
    return "0123456789A"[-sum(alphabet.index(sign) * (13 - i) for i, sign in enumerate(text)) % 11]


def nhi(text: str) -> str | None:
    """New Zealand: letters without I and O count from 1."""
    alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ"
    summed = sum((int(s) if s.isdigit() else alphabet.index(s) + 1) * (7 - i) for i, s in enumerate(text))
    return None if summed % 11 == 0 else str(-summed % 11 % 10)


def emso(region: str) -> Make:
    """Former Yugoslavia: DDMMYYY, region, serial, check digit."""
    check = down((7, 6, 5, 4, 3, 2))

    def make(choice: Random) -> str:
        while True:
            day = fill("D", choice)
            body = f"{day[:4]}9{day[4:]}{region}{fill('###', choice)}"
            if end := check(body):
                return body + end

    return make


def gstin(text: str) -> str:
    """India: base 36, doubled at every second place, digits of each product added."""
    summed = sum(sum(divmod(int(sign, 36) * (1 + i % 2), 36)) for i, sign in enumerate(text))
    return _BASE36[-summed % 36]


def baltic(text: str) -> str:
    """Estonia and Lithuania: weights 1 to 9 and 1, then again from 3."""
    first = total(text, (1, 2, 3, 4, 5, 6, 7, 8, 9, 1)) % 11
    second = total(text, (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)) % 11
    return str(first if first < 10 else second % 10)


def moved(at: int, make: Make) -> Make:
    """Move the last character to a place inside the number."""

    def make_moved(choice: Random) -> str:
        number = make(choice)
        return number[:at] + number[-1] + number[at:-1]

    return make_moved


def behind(prefix: str, make: Make) -> Make:
    """Put letters before a number."""
    return lambda choice: prefix + make(choice)


def atu(text: str) -> str:
    """Austria: Luhn and four more."""
    return str((6 - sum(sum(divmod(int(sign) * (1 + i % 2), 10)) for i, sign in enumerate(text))) % 10)


def nie(choice: Random) -> str:
    """Spain, foreigners: the first letter counts as 0, 1 or 2."""
    first, body = choice.choice("XYZ"), fill("#######", choice)
    return first + body + _DNI(str("XYZ".index(first)) + body)


def siret(choice: Random) -> str:
    """France: a SIREN, a place of business, Luhn over all."""
    body = _SIREN(choice) + "0002"
    return body + luhn(body)


def tva(choice: Random) -> str:
    """France: a key before the SIREN."""
    siren = _SIREN(choice)
    return f"FR{(12 + 3 * (int(siren) % 97)) % 97:02}{siren}"


def dutch_vat(choice: Random) -> str:
    """Netherlands: nine digits, B, two check digits."""
    body = f"NL{fill('#########', choice)}B"
    return body + btw(body)


def cartao_de_cidadao(text: str) -> str:
    """Portugal: check digit of the old number, a version, a check digit of all."""
    end = f"{down(range(9, 1, -1), 11, _ELEVEN)(text)}ZX"
    return end + cartao(text + end)


def hkid(text: str) -> str:
    """Hong Kong: a blank counts 36 before one letter."""
    return "0123456789A"[-(36 * 9 + total(text, range(8, 1, -1))) % 11]


def rnokpp(text: str) -> str:
    """Ukraine: weights of which the first is -1."""
    return str((total(text[1:], (5, 7, 9, 4, 6, 10, 5, 7)) - int(text[0])) % 11 % 10)


def titulo(text: str) -> str:
    """Brazil, voters: eight digits and a check digit; two digits of a state and another over these."""
    one = rest(range(2, 10), 11, _ELEVEN)(text[:8])
    return f"{one}{rest((7, 8, 9), 11, _ELEVEN)(text[8:] + str(one))}"


_ELEVEN, _TWELVE = "01234567890", "11234567890"
_EIGHT = range(8, 1, -1)
_DNI = letter_of("TRWAGMYFPDXBNJZSQVHLCKE")
_SIREN = checked("1#######", luhn)
_CARD, _AMEX = "!4##############|!5!1#############|!5!2#############", "!3!4############|!3!7############"
_RODNE = checked("Y###", rodne_cislo)
_ICO = checked("!2######|!4######", down(_EIGHT, 11, "11234567890"))
_CPF = both(down(range(10, 1, -1), 11, _ELEVEN), down(range(11, 1, -1), 11, _ELEVEN))
_CNPJ_1, _CNPJ_2 = (5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2), (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
_CNPJ = both(down(_CNPJ_1, 11, _ELEVEN), down(_CNPJ_2, 11, _ELEVEN))
_PIS = (3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
_INN_1, _INN_2 = (7, 2, 4, 10, 3, 5, 9, 4, 6, 8), (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)
_CUIT = down((5, 4, 3, 2, 7, 6, 5, 4, 3, 2))
_CBU = (7, 1, 3, 9, 7, 1, 3), (3, 9, 7, 1, 3, 9, 7, 1, 3, 9, 7, 1, 3)
_RUC = down((5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, "11234567890")
_CHINA = rest((7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2), 11, "10X98765432")
_KR = down((2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), 11, _TWELVE)
_NINO = "|".join(f"!{a[0]}!{a[1]}######!{a[2]}" for a in ("ABC", "JKA", "NXB", "SPD", "PRC"))
_FODSEL = both(down((3, 7, 6, 1, 8, 9, 4, 5, 2)), down((5, 4, 3, 2, 7, 6, 5, 4, 3, 2)))

MAKERS: dict[str, Make] = {
    "card": checked(_CARD, luhn),
    "amex": checked(_AMEX, luhn),
    "passport-de": plain("!C!0!1!X!0!0!T##|!C##!H!K###!K"),
    "passport-9": plain("1########"),
    "passport-2-7": plain("@@#######"),
    "passport-1-8": plain("@########"),
    "passport-ru": plain("!4!5########"),
    "steuer-id": steuer_id,
    "rvnr": checked("!1!2D@##|!6!5D@##", digit_sums((2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1))),
    "kvnr": checked("@########", digit_sums((1, 2))),
    "vat-de": behind("DE", checked("1#######", iso_11_10)),
    "ausweis": checked("!L!0!1!X!0#!T##|!T!2!2!0!0!0!1##|!C!Z##!1!5!F!K#", rest((7, 3, 1), 10)),
    "svnr-at": moved(3, checked("1##D", rest((3, 7, 9, 5, 8, 4, 2, 1, 6)))),
    "vat-at": behind("ATU", checked("#######", atu)),
    "ahv": checked("!7!5!6#########", down((1, 3), 10)),
    "uid-ch": behind("CHE", checked("1#######", down((5, 4, 3, 2, 7, 6, 5, 4)))),
    "nir": checked("!1Y######|!2Y######", mod97),
    "spi": checked("!3#########|!1#########", lambda text: f"{int(text) % 511:03}"),
    "siren": _SIREN,
    "siret": siret,
    "vat-fr": tva,
    "codice-fiscale": codice_fiscale,
    "partita-iva": checked("#######0#1", luhn),
    "dni": checked("1#######", _DNI),
    "nie": nie,
    "cif": behind("B", checked("1######", luhn)),
    "nuss": checked("!2!81#######|!0!81#######", lambda text: f"{int(text) % 97:02}"),
    "nif-pt": checked("!2#######|!1#######", down(range(9, 1, -1), 11, _ELEVEN)),
    "niss-pt": checked("!1#########", rest((29, 23, 19, 17, 13, 11, 7, 5, 3, 2), 10, "9876543210")),
    "cartao": checked("1#######", cartao_de_cidadao),
    "bsn": checked("1#######", rest(range(9, 1, -1))),
    "vat-nl": dutch_vat,
    "rrn-be": checked("Y###", mod97),
    "kbo": checked("!0!4######|!0!7######", mod97),
    "matricule": checked("L###", lambda text: luhn(text) + verhoeff(text)),
    "ppsn": checked("1######", rest(_EIGHT, 23, "WABCDEFGHIJKLMNOPQRSTUV")),
    "nhs": checked("!4########|!6########", down(range(10, 1, -1))),
    "nino": plain(_NINO),
    "utr": moved(0, checked("#########", rest((6, 7, 8, 9, 10, 5, 4, 3, 2), 11, "21987654321"))),
    "vat-gb": checked("1######", lambda text: f"{97 - total(text, _EIGHT) % 97:02}"),
    "licence-gb": plain("!M!O!R!G!A!6!5!7!0!5!4@@!9@@|!J!O!N!E!S!7!0!1!1!2!5@@!9@@"),
    "pesel": checked("Y####", down((1, 3, 7, 9, 1, 3, 7, 9, 1, 3), 10)),
    "nip": checked("!5!2#######|!7!8#######", rest((6, 5, 7, 2, 3, 4, 5, 6, 7))),
    "regon": checked("1#######", rest((8, 9, 2, 3, 4, 5, 6, 7), 11, _ELEVEN)),
    "dowod": moved(3, checked("!A@@#####|!C@@#####", rest((7, 3, 1, 7, 3, 1, 7, 3), 10))),
    "rodne": _RODNE,
    "ico": _ICO,
    "vat-cz": behind("CZ", _ICO),
    "vat-sk": behind("SK", checked("1#!2######", rodne_cislo)),
    "adoazonosito": checked("!8########", rest(range(1, 10))),
    "taj": checked("1#######", rest((3, 7), 10)),
    "adoszam": lambda choice: checked("1######", down((9, 7, 3, 1), 10))(choice) + "242",
    "cnp": checked("!1Y!1!2###|!2Y!4!0###", rest((2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9), 11, "01234567891")),
    "cui": checked("1######", down((3, 2, 1, 7, 5, 3, 2), 11, _ELEVEN)),
    "egn": checked("Y###", rest((2, 4, 8, 5, 10, 9, 7, 3, 6), 11, _ELEVEN)),
    "eik": checked("1#######", rest(range(1, 9))),
    "oib": checked("1#########", iso_11_10),
    "emso": emso("50"),
    "jmbg": emso("71"),
    "davcna": checked("1######", down(_EIGHT, 11, " 1234567890")),
    "pib": checked("1#######", iso_11_10),
    "afm": checked("!0#######|!1#######", rest((256, 128, 64, 32, 16, 8, 4, 2), 11, _ELEVEN)),
    "amka": checked("D####", luhn),
    "personnummer": checked("Y###", luhn),
    "orgnr-se": checked("!5!5!6######", luhn),
    "fodselsnummer": checked("D!2##|D!3##", _FODSEL),
    "orgnr-no": checked("!9#######", down((3, 2, 7, 6, 5, 4, 3, 2))),
    "cpr": checked("D!2##|D!1##", down((4, 3, 2, 7, 6, 5, 4, 3, 2))),
    "cvr": checked("1######", down((2, 7, 6, 5, 4, 3, 2))),
    "hetu": checked("D!2##|D!7##", letter_of("0123456789ABCDEFHJKLMNPRSTUVWXY")),
    "y-tunnus": checked("1######", down((7, 9, 10, 5, 8, 4, 2), 11, "0123456789 ")),
    "isikukood": checked("!3Y###|!4Y###", baltic),
    "personas-kods": checked("D!1###", lambda t: str((1 - total(t, (1, 6, 3, 7, 9, 10, 5, 8, 4, 2))) % 11 % 10)),
    "ssn-us": plain("!2!1#!4#1###|!5!0#!2#1###"),
    "itin": plain("!9##!7#####|!9##!8!1####"),
    "ein": plain("!4!7#######|!8!2#######"),
    "npi": lambda choice: (body := fill("!1########", choice)) + luhn("80840" + body),
    "aba": checked("!0!2!1#####|!1!2!2#####", down((3, 7, 1), 10)),
    "mbi": plain("1@1#@1#@@##"),
    "licence-ca": plain("@#######"),
    "sin": checked("!4#######|!5#######", luhn),
    "bn": lambda choice: checked("1#######", luhn)(choice) + "RT0001",
    "curp": curp,
    "rfc": checked("!G!A!R!MY!A!B|!L!O!P!JY!X!1", rfc),
    "clabe": checked("!0!1!2!1!8!0###########|!0!7!2!3!2!0###########", down((3, 7, 1), 10)),
    "nss": checked("1#########", luhn),
    "cpf": checked("1########", _CPF),
    "cnpj": checked("1#######!0!0!0!1", _CNPJ),
    "pis": checked("!1!2########", down(_PIS, 11, _ELEVEN)),
    "titulo": checked("1#######!2!1|1#######!1!4", titulo),
    "cuit": checked("!2!0########|!2!7########|!3!0!7#######", _CUIT),
    "cbu": lambda choice: (
        checked("!0!1!7####", down(_CBU[0], 10))(choice) + checked("#############", down(_CBU[1], 10))(choice)
    ),
    "dni-ar": plain("!3#######|!2#######"),
    "rut": checked("!1#######", down((3, 2, 7, 6, 5, 4, 3, 2), 11, "0123456789K")),
    "nit": checked("!9#######1|!8#######1", down((41, 37, 29, 23, 19, 17, 13, 7, 3), 11, "01234567891")),
    "cedula-co": plain("!1!0########"),
    "ruc": checked("!1!0########|!2!0########", _RUC),
    "cedula-ec": checked("!1!7!1######|!0!9!2######", luhn),
    "ci-uy": checked("1######", down((2, 9, 8, 7, 6, 3, 4), 10)),
    "tfn": checked("1#######", rest((1, 4, 3, 7, 5, 8, 6, 9))),
    "abn": abn,
    "acn": checked("!0#######|!1#######", down(range(8, 0, -1), 10)),
    "medicare": lambda choice: checked("!2#######|!4#######", rest((1, 3, 7, 9), 10))(choice) + "1",
    "ird": checked("!1!0######|!0!4######", down((3, 2, 7, 6, 5, 4, 3, 2))),
    "nhi": checked("@@@###", nhi),
    "aadhaar": checked("!4##########|!7##########", verhoeff),
    "pan": plain("@@@!P@####@"),
    "gstin": checked("!2!7@@@!P@####@!1!Z", gstin),
    "id-cn": checked("!1!1!0!1!0!5L###|!3!1!0!1!0!4L###", _CHINA),
    "uscc": checked("!9!1!3!1!0!1!0!5!M!A!0!1!F####", uscc),
    "id-tw": checked("!A!1#######|!F!2#######", taiwan),
    "hkid": checked("@######", hkid),
    "rrn-kr": checked("Y!1#####|Y!2#####", _KR),
    "brn-kr": checked("1########", brn),
    "my-number": checked("1##########", down((6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, _ELEVEN)),
    "houjin": moved(0, checked("############", lambda text: str(9 - total(text, (2, 1)) % 9))),
    "nric": behind("S", checked("1######", rest((2, 7, 6, 5, 4, 3, 2), 11, "JZIHGFEDCBA"))),
    "mykad": plain("Y!1!4####|Y!0!1####"),
    "id-th": checked("!1#!0#########|!3#!0#########", down(range(13, 1, -1), 11, _TWELVE)),
    "nik": plain("!3!1!7!1!0!1D!0!0!0!1|!3!2!7!3!0!2D!0!0!0!3"),
    "mst": checked("!0!3#######|!0!1#######", rest((31, 29, 23, 19, 17, 13, 7, 5, 3), 11, " 9876543210")),
    "cccd": plain("!0!7!9!0!9!5######|!0!0!1!1!8!8######"),
    "id-za": checked("Y!5###!0!8|Y!1###!0!8", luhn),
    "id-il": checked("!0#######|!3#######", luhn),
    "tckn": checked("1########", tckn),
    "vkn": checked("1########", vkn),
    "id-sa": checked("!1########", luhn),
    "emirates": checked("!7!8!4!1!9!8!7#######", luhn),
    "iin": checked("Y!3####|Y!4####", rest(range(1, 12))),
    "inn-12": checked("!7!7########", both(rest(_INN_1, 11, _ELEVEN), rest(_INN_2, 11, _ELEVEN))),
    "inn-10": checked("!7!7#######", rest((2, 4, 10, 3, 5, 9, 4, 6, 8), 11, _ELEVEN)),
    "snils": checked("1########", snils),
    "ogrn": checked("!1!0!2!7!7!0######", lambda text: str(int(text) % 11 % 10)),
    "rnokpp": checked("!2########|!3########", rnokpp),
    "edrpou": checked("!2######", rest(range(1, 8))),
    "iban-de": iban("DE", "1#################"),
    "iban-at": iban("AT", "1###############"),
    "iban-fr": iban("FR", "1#########!0!0!0########!2!5"),
    "iban-nl": iban("NL", "!A!B!N!A##########"),
}
