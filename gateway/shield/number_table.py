"""The table of numbers that states, banks and registers give out: form, check digits, date. Knows no context word.

Each row is one check; `check_digits` says how it is read. The algorithms are the issuing offices', as collected in the
python-stdnum documentation, where no source is named.
"""

from collections.abc import Mapping

from gateway.shield import number_checks as checks
from gateway.shield.check_digits import (
    DIGITS,
    Check,
    aba,
    any_of,
    bic,
    card,
    date,
    dated,
    digit_sums,
    digits,
    iban,
    luhn,
    luhn_holds,
    mod11_10,
    mrz,
    multiple,
    padded,
    part,
    plain,
    remainder,
    text,
    two_rounds,
    verhoeff,
    verhoeff_holds,
    vin,
    weighted,
)

_TEN = "01234567890"  # ten is written as nought
_TWELVE = "11234567890"  # eleven as one, ten as nought
_ONE = "01234567891"  # ten is written as one
_CPF = (weighted(range(-10, -1), 11, _TEN, at=9), weighted(range(-11, -1), 11, _TEN))
_CNPJ = (5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
_CBU = (-3, -9, -7, -1, -3, -9, -7, -1, -3, -9, -7, -1, -3)
_CUIT = (-5, -4, -3, -2, -7, -6, -5, -4, -3, -2)
_INN = (7, 2, 4, 10, 3, 5, 9, 4, 6, 8)
_CCC = (-1, -2, -4, -8, -5, -10, -9, -7, -3, -6)
_IRD = (-3, -2, -7, -6, -5, -4, -3, -2)
_NINE, _THREE = [n % 9 + 1 for n in range(11)], [(n + 2) % 9 + 1 for n in range(11)]
_SVNR = (3, 7, 9, 0, 5, 8, 4, 2, 1, 6)
_CHINA = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_RVNR = (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)
_MBI = "[AC-HJKMNP-RT-Y]"
_PAN = r"(?!ABCDE|ABCPE)[A-Z]{3}[ABCFGHJLPT][A-Z](?!0000)\d{4}[A-Z]"
_USCC = "0123456789ABCDEFGHJKLMNPQRTUWXY"  # GB 32100-2015: no I, O, S, V, Z
_CURP = "0123456789ABCDEFGHIJKLMN\0OPQRSTUVWXYZ"
_BULGARIAN_FIRM = digits(9, two_rounds(range(1, 9), range(3, 11)))
_NORWEGIAN_FIRM = digits(9, multiple((3, 2, 7, 6, 5, 4, 3, 2, 1), 11))
_SWISS_FIRM = digits(9, multiple((5, 4, 3, 2, 7, 6, 5, 4, 1), 11))
_GREEK_FIRM = digits(9, weighted((256, 128, 64, 32, 16, 8, 4, 2), 11, _TEN))
_NUMBERS: Mapping[str, Check] = {
    "luhn": luhn,
    "card": card,
    "iban": iban,
    "aba": aba,
    "bic": bic,
    "verhoeff": verhoeff,
    "vin": vin,
    "mrz": mrz,
    "dated": dated,
    "ssn": digits(r"(?!9|000|666|078051120|219099999|457555462)\d{3}(?!00)\d\d(?!0000)\d{4}"),
    "itin": digits(r"9\d\d(?:5\d|6[0-5]|7\d|8[0-8]|9[0-24-9])\d{4}"),
    "ein": digits(r"(?!0[0789]|1[789]|2[89]|49|69|7[089]|89|9[67])\d{9}"),
    "npi": digits(r"[12]\d{9}", lambda number: luhn_holds("80840" + number)),
    "dea": text(r"[A-Z][A-Z\d]\d{7}", part(slice(2, None), weighted((1, 2, 1, 2, 1, 2), 10))),
    "mbi": text(rf"[1-9]{_MBI}(?:{_MBI}|\d)\d{_MBI}(?:{_MBI}|\d)\d{_MBI}{{2}}\d\d"),
    "de-tax": digits(r"[1-9]\d{10}", mod11_10, lambda number: len(set(number[:10])) in (8, 9)),
    "de-pension": text(r"\d{8}[A-Z]\d{3}", date(2, "dmy"), digit_sums(_RVNR)),
    "de-card": text(r"[\dA-Z]{9}\dD?", weighted((7, 3, 1) * 3, 10, at=9), lambda number: len(set(number)) > 2),
    "de-kvnr": text(r"[A-Z]\d{9}", digit_sums((1, 2))),
    "fr-nir": text(r"[123478]\d\d(?:0[1-9]|1[0-2]|[23]\d|4[0-2]|[5-9]\d)(?:\d\d|2[AB])\d{8}", checks.nir),
    "fr-spi": digits(r"[0-3]\d{12}", remainder(511, 10)),
    "es-dni": text(r"[XYZ\d]\d{7}[A-Z]", checks.nie),
    "es-ssn": text(r"\d{11,12}", checks.spanish_insurance),
    "it-tax": text(r"[A-Z]{6}[\dA-Z]{2}[ABCDEHLMPRST][\dA-Z]{6}[A-Z]", checks.codice_fiscale),
    "gb-nino": text(r"(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PRSTW-Z][A-CEGHJ-NPRSTW-Z]\d{6}[A-D]"),
    "gb-utr": digits(10, weighted((0, 6, 7, 8, 9, 10, 5, 4, 3, 2), 11, "21987654321", at=0)),
    "gb-nhs": digits(10, weighted(range(-10, -1), 11, DIGITS)),
    "be-nrn": digits(r"\d\d(?:[02468]\d|[13579][0-2])(?:[0-2]\d|3[01])\d{5}", checks.belgian),
    "no-fnr": digits(
        11,
        date(0, "dmy", months=(0, 40, 80), days=(0, 40)),
        multiple((3, 7, 6, 1, 8, 9, 4, 5, 2, 1), 11),
        multiple((5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1), 11),
    ),
    "fi-hetu": checks.finnish,
    "se-pnr": digits(
        r"(?:\d\d)?\d{10}", part(slice(-10, None), date(days=(0, 60))), part(slice(-10, None), luhn_holds)
    ),
    "dk-cpr": digits(10, date(0, "dmy")),
    "is-kt": digits(r"\d{9}[089]", date(0, "dmy", days=(0, 40)), weighted(_IRD, 11, DIGITS, at=8)),
    "cz-rc": digits(10, date(months=(0, 20, 50, 70)), lambda number: int(number) % 11 == 0),
    "ee-ik": digits(r"[1-8]\d{10}", date(1), two_rounds((*range(1, 10), 1), (*range(3, 10), 1, 2, 3))),
    "ie-pps": text(r"\d{7}[A-W][A-Z]?", checks.irish),
    "tr-tckn": digits(r"[1-9]\d{10}", weighted((7, -1) * 4 + (7,), 10, at=9), weighted((1,) * 10, 10)),
    "ru-inn": digits(12, weighted(_INN, 11, _TEN, at=10), weighted((3, *_INN), 11, _TEN)),
    "ru-snils": digits(11, checks.snils),
    "br-cpf": digits(11, *_CPF),
    "br-cnpj": digits(
        14, weighted([-one for one in _CNPJ], 11, _TEN, at=12), weighted([-6, *(-one for one in _CNPJ)], 11, _TEN)
    ),
    "br-cnh": digits(11, checks.brazilian_licence),
    "br-pis": digits(11, weighted((-3, -2, -9, -8, -7, -6, -5, -4, -3, -2), 11, _TEN)),
    "br-voter": digits(
        r"\d{8}(?:0[1-9]|1\d|2[0-8])\d\d",
        weighted(range(2, 10), 11, _TEN, at=10),
        part(slice(8, None), weighted((7, 8, 9), 11, _TEN)),
    ),
    "cl-rut": text(r"\d{7,8}[\dK]", padded(9, weighted(_IRD, 11, "0123456789K"))),
    "mx-curp": text(r"[A-Z]{4}\d{6}[\dA-Z]{7}\d", date(4), weighted(range(-18, -1), 10, values=_CURP)),
    "ec-cedula": digits(r"(?:0[1-9]|1\d|2[0-4])[0-5]\d{7}", luhn_holds),
    "in-pan": text(_PAN),
    "cn-id": text(r"[1-7]\d{5}(?:19|20)\d{9}[\dX]", date(8), weighted(_CHINA, 11, "10X98765432")),
    "hk-id": text(r"[A-Z]{1,2}\d{6}[\dA]", checks.hong_kong),
    "tw-id": text(r"[A-Z][1289]\d{8}", checks.taiwanese),
    "sg-nric": text(r"[STFGM]\d{7}[A-Z]", checks.singaporean),
    "kr-rrn": digits(13, date(), checks.korean),
    "jp-my-number": digits(12, weighted((-6, -5, -4, -3, -2, -7, -6, -5, -4, -3, -2), 11, _TEN)),
    "hr-oib": digits(11, mod11_10),
    "au-abn": digits(11, multiple((10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19), 89, (10,))),
    "au-medicare": digits(r"[2-6]\d{9,10}", weighted((1, 3, 7, 9) * 2, 10, at=8)),
    "at-svnr": digits(r"[1-9]\d{9}", date(4, "dmy"), weighted(_SVNR, 11, DIGITS, at=3)),
    "ca-sin": digits(r"[1-79]\d{8}", luhn_holds),
    "za-id": digits(13, luhn_holds, date()),
    "gr-amka": digits(11, luhn_holds, date(0, "dmy")),
    "do-cedula": digits(11, luhn_holds),
    "il-id": digits(r"[0-3]\d{8}", luhn_holds),
    "ae-id": digits(r"7\d{14}", luhn_holds),
    "sa-id": digits(r"[12]\d{9}", luhn_holds),
    "nl-bsn": digits(9, weighted(range(9, 1, -1), 11, DIGITS)),
    "pl-pesel": digits(11, date(months=(0, 20, 40, 60, 80)), weighted((9, 7, 3, 1, 9, 7, 3, 1, 9, 7), 10)),
    "pl-nip": digits(10, weighted((6, 5, 7, 2, 3, 4, 5, 6, 7), 11, DIGITS)),
    "pl-card": text(r"[A-Z]{3}\d{6}", multiple((7, 3, 1, 9, 7, 3, 1, 7, 3), 10)),
    "pt-nif": digits(9, weighted(range(-9, -1), 11, _TEN)),
    "ro-cnp": digits(13, weighted((2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9), 11, _ONE)),
    "bg-egn": digits(10, date(months=(0, 20, 40)), weighted((2, 4, 8, 5, 10, 9, 7, 3, 6), 11, _TEN)),
    "rs-jmbg": digits(13, weighted((-7, -6, -5, -4, -3, -2) * 2, 11, _TEN)),
    "hu-taj": digits(9, weighted((3, 7) * 4, 10)),
    "ch-ahv": digits(13, weighted((-1, -3) * 6, 10)),
    "ua-rnokpp": digits(10, weighted((-1, 5, 7, 9, 4, 6, 10, 5, 7), 11, _TEN)),
    "ar-cuit": digits(11, weighted(_CUIT, 11, "01234567899")),
    "uy-ci": digits(8, weighted((-2, -9, -8, -7, -6, -3, -4), 10)),
    "th-id": digits(13, weighted(range(-13, -1), 11, _TWELVE)),
    "au-tfn": digits(9, weighted((1, 4, 3, 7, 5, 8, 6, 9), 11, DIGITS)),
    "kz-iin": digits(r"\d{6}[1-6]\d{5}", date(), two_rounds(range(1, 12), (*range(3, 12), 1, 2))),
    "lu-id": digits(13, date(2), part(slice(12), luhn_holds), lambda number: verhoeff_holds(number[:11] + number[12])),
    "lv-pk": any_of(
        digits(r"32\d{9}"),
        digits(r"\d{6}[0-2]\d{4}", date(0, "dmy"), weighted((10, 5, 8, 4, 2, 1, 6, 3, 7, 9), 11, _TEN, plus=1)),
    ),
    "ir-code": digits(10, weighted(range(-10, -1), 11, _ONE)),
    "mu-id": text(r"[A-Z]\d{12}[\dA-G]", date(1, "dmy"), weighted(range(-14, -1), 17)),
    "zw-id": text(r"\d{8,9}[A-Z]\d\d", part(slice(-2), checks.letter_at("ZABCDEFGHJKLMNPQRSTVWXY"))),
    "nz-nhi": text(r"[A-HJ-NP-Z]{3}\d\d(?:\d\d|[A-HJ-NP-Z]{2})", checks.new_zealand_health),
    "nz-ird": digits(r"\d{8,9}", padded(9, checks.new_zealand_tax)),
    "do-rnc": digits(9, checks.dominican),
    "orcid": text(r"\d{15}[\dX]", weighted([-(2 ** (15 - place)) for place in range(15)], 11, "0123456789X", plus=1)),
    "md-idnp": digits(13, weighted((7, 3, 1) * 4, 10)),
    "kw-id": digits(12, weighted((-2, -1, -6, -3, -7, -9, -10, -5, -8, -4, -2), 11, DIGITS)),
    "sv-dui": digits(9, weighted(range(-9, -1), 10)),
    "es-cif": text(r"[ABCDEFGHJNPQRSUVW]\d{7}[\dA-J]", checks.cif),
    "in-gstin": text(rf"(?:0[1-9]|[12]\d|3[0-8]){_PAN}[\dA-Z]{{3}}", checks.gstin),
    "cn-uscc": text(
        rf"[{_USCC}]{{2}}\d{{6}}[{_USCC}]{{10}}",
        weighted([-(3**place) for place in range(17)], 31, _USCC, values=_USCC),
    ),
    "kr-brn": digits(10, checks.korean_firm),
    "co-nit": digits(r"\d{9,10}", padded(10, weighted((41, 37, 29, 23, 19, 17, 13, 7, 3), 11, "01987654321"))),
    "ve-rif": text(r"[VEJPG]\d{9}", checks.venezuelan),
    "tr-vkn": digits(10, checks.turkish_firm),
    "tw-ubn": digits(8, checks.taiwanese_firm),
    "ar-cbu": digits(22, weighted((-7, -1, -3, -9, -7, -1, -3), 10, at=7), part(slice(8, None), weighted(_CBU, 10))),
    "es-ccc": digits(
        20, weighted(_CCC[2:], 11, _ONE, at=8), lambda number: weighted(_CCC, 11, _ONE)(number[10:] + number[9])
    ),
    "mod11-right": text(
        r"\d{4,11}[\dK]",
        lambda number: any(padded(12, weighted(range(-12, -1), 11, signs))(number) for signs in (DIGITS + "K", _TEN)),
    ),
    "ch-uid": _SWISS_FIRM,
    "no-org": _NORWEGIAN_FIRM,
    "mx-clabe": digits(18, weighted((-3, -7, -1) * 5 + (-3, -7), 10)),
    "fr-siren": digits(9, luhn_holds),
    "fr-siret": digits(14, luhn_holds),
    "it-iva": digits(11, luhn_holds),
    "iccid": digits(r"8\d{18}", luhn_holds),
    "pe-ruc": digits(11, weighted(_CUIT, 11, _TWELVE)),
    "au-acn": digits(9, weighted(range(-8, 0), 10)),
    "pl-regon": digits(9, weighted((8, 9, 2, 3, 4, 5, 6, 7), 11, _TEN)),
    "vn-mst": digits(10, weighted((31, 29, 23, 19, 17, 13, 7, 5, 3), 11, " 9876543210")),
}

_VAT: Mapping[str, Check] = {
    "AT": digits(8, checks.austrian_firm),
    "BE": digits(r"[01]\d{9}", lambda number: (int(number[:8]) + int(number[8:])) % 97 == 0),
    "BG": any_of(
        _BULGARIAN_FIRM, _NUMBERS["bg-egn"], digits(10, weighted((-4, -3, -2, -7, -6, -5, -4, -3, -2), 11, _TEN))
    ),
    "CH": _SWISS_FIRM,
    "CY": text(r"\d{8}[A-Z]", checks.cypriot),
    "CZ": any_of(digits(r"[0-8]\d{7}", weighted(range(-8, -1), 11, _TWELVE)), _NUMBERS["cz-rc"]),
    "DE": digits(r"[1-9]\d{8}", mod11_10),
    "DK": digits(8, multiple((2, 7, 6, 5, 4, 3, 2, 1), 11)),
    "EE": digits(9, multiple((3, 7, 1) * 3, 10)),
    "EL": _GREEK_FIRM,
    "ES": any_of(_NUMBERS["es-dni"], _NUMBERS["es-cif"]),
    "FI": digits(8, multiple((7, 9, 10, 5, 8, 4, 2, 1), 11)),
    "FR": text(r"[\dA-Z]{2}\d{9}", checks.french_firm),
    "GB": digits(9, multiple((8, 7, 6, 5, 4, 3, 2, 10, 1), 97, (0, 42, 55))),
    "GR": _GREEK_FIRM,
    "HR": _NUMBERS["hr-oib"],
    "HU": digits(8, multiple((9, 7, 3, 1) * 2, 10)),
    "IE": _NUMBERS["ie-pps"],
    "IT": _NUMBERS["it-iva"],
    "LT": any_of(digits(9, two_rounds(_NINE, _THREE)), digits(12, two_rounds(_NINE, _THREE))),
    "LU": digits(8, remainder(89, 6)),
    "LV": digits(11, multiple((9, 1, 4, 8, 3, 10, 2, 5, 7, 6, 1), 11, (3,))),
    "MT": digits(8, multiple((3, 4, 6, 7, 8, 9, 10, 1), 37)),
    "NL": text(r"\d{9}B\d\d", checks.dutch_firm),
    "NO": _NORWEGIAN_FIRM,
    "PL": _NUMBERS["pl-nip"],
    "PT": _NUMBERS["pt-nif"],
    "RO": digits(r"\d{4,10}", checks.romanian_firm),
    "SE": digits(r"\d{10}01", part(slice(10), luhn_holds)),
    "SI": digits(8, weighted(range(-8, -1), 11, _TEN)),
    "SK": digits(r"[1-9]\d{9}", lambda number: int(number) % 11 == 0),
}

_PERSON = any_of(
    digits(10, weighted(range(1, 10), 11, DIGITS)),  # Hungary
    digits(11, luhn_holds),  # Mexico
    digits(11, weighted((29, 23, 19, 17, 13, 11, 7, 5, 3, 2), 10, "9876543210")),  # Portugal
    text(r"\d{9}[A-Z]{2}\d", checks.card_of_portugal),
)
_FIRM = any_of(
    *(check for country, check in _VAT.items() if country != "FR"),
    digits(r"\d{9,10}", luhn_holds),  # Canada, Sweden
    digits(8, weighted(range(1, 8), 11, DIGITS)),  # Ukraine
    digits(10, weighted((2, 4, 10, 3, 5, 9, 4, 6, 8), 11, _TEN)),  # Russia
    digits(11, part(slice(8), multiple((9, 7, 3, 1) * 2, 10))),  # Hungary with its office
    digits(13, checks.thirteen),
    _NUMBERS["br-cnpj"],
)


def vat(value: str, _argument: str) -> bool:
    """Check a European number of value added tax: its country's letters, then that country's check digits."""
    number = plain(value)
    country, number = ("CH", number[3:]) if number.startswith("CHE") else (number[:2], number[2:])
    number = number.removesuffix("MWST").removesuffix("MVA").removesuffix("TVA")
    check = _VAT.get(country)
    return check is not None and check(number.removeprefix("U") if country == "AT" else number, "")


def firm(value: str, _argument: str) -> bool:
    """Check a number of a firm by the check digits of any country; letters before and `RT0001` behind do not count."""
    return _FIRM("".join(char for char in plain(value).partition("RT")[0] if char in DIGITS), "")


NUMBERS: Mapping[str, Check] = {**_NUMBERS, "vat": vat, "firm": firm, "person": _PERSON}
