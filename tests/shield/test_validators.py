"""The validators: published examples hold, one changed character does not, and nothing they are given breaks them."""

import base64
import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.shield import Direction, load
from gateway.shield.validators import VALIDATORS, entropy_of

# A check or the id of a rule that has one, a number its issuer or a standard publishes as an example, or one computed by hand.
_VALID = [
    ("luhn", "79927398713"),
    ("luhn:16", "4111 1111 1111 1111"),
    ("card", "4111-1111-1111-1111"),
    ("card", "378282246310005"),
    ("card", "30569309025904"),
    ("card", "3530111333300000"),
    ("card", "2223003122003222"),
    ("card:14", "6011111111111117"),
    ("iban", "GB82 WEST 1234 5698 7654 32"),
    ("iban", "DE89 3704 0044 0532 0130 00"),
    ("iban", "no9386011117947"),
    ("aba", "011000015"),
    ("aba", "122105155"),
    ("bic", "DEUTDEFF500"),
    ("bic", "CHASUS33"),
    ("verhoeff", "2341 2341 2346"),
    ("vin", "1M8GDM9AXKP042788"),
    ("mrz", "L898902C36UTO7408122F1204159ZE184226B<<<<<10"),
    ("npi", "1234567893"),
    ("us-dea", "F91234563"),
    ("de-tax-id", "86095742719"),
    ("de-tax-id", "47036892816"),
    ("de-pension", "15070649C103"),
    ("fr-nir", "2 55 08 14 168 025 38"),
    ("es-dni-named", "12345678Z"),
    ("es-dni-named", "X-1234567-L"),
    ("it-tax", "RSSMRA85T10A562S"),
    ("gb-nhs", "943 476 5919"),
    ("be-nrn", "85.07.30-033.28"),
    ("nl-bsn", "111222333"),
    ("no-fnr", "15076500565"),
    ("fi-hetu", "131052-308T"),
    ("se-pnr", "811228-9874"),
    ("dk-cpr", "211062-5629"),
    ("is-kt", "120174-3399"),
    ("cz-rc", "710319/2745"),
    ("ee-ik", "37605030299"),
    ("ie-pps", "6433435F"),
    ("ie-pps", "6433435OA"),
    ("ch-ahv", "756.9217.0769.85"),
    ("at-svnr", "1237 010180"),
    ("pl-pesel", "44051401359"),
    ("pl-nip", "856-734-62-15"),
    ("pt-nif", "501964843"),
    ("ro-cnp", "1630615123457"),
    ("bg-egn", "752316 926 3"),
    ("rs-jmbg", "0101006500006"),
    ("hr-oib", "33392005961"),
    ("gr-amka", "01013099997"),
    ("tr-tckn", "17291716060"),
    ("ru-inn", "500100732259"),
    ("ru-snils", "112-233-445 95"),
    ("ua-rnokpp", "1759013776"),
    ("br-cpf", "529.982.247-25"),
    ("br-cnpj", "11.222.333/0001-81"),
    ("ar-cuit", "20-05536168-2"),
    ("cl-rut", "12.531.909-2"),
    ("uy-ci", "1.234.567-2"),
    ("ec-cedula", "171430710-3"),
    ("do-cedula", "00113918205"),
    ("mx-curp", "BOXW310820HNERXN09"),
    ("cn-id", "11010519491231002X"),
    ("hk-id", "G123456(A)"),
    ("tw-id", "A123456789"),
    ("sg-nric", "S1234567D"),
    ("kr-rrn", "971013-9019902"),
    ("kr-rrn", "230415-3123456"),
    ("jp-my-number", "1234 5678 9018"),
    ("th-id", "1-2345-45678-78-1"),
    ("il-id", "03933742-3"),
    ("za-id", "8001015009087"),
    ("ae-id", "784196865703050"),
    ("sa-id", "1000000008"),
    ("au-tfn", "123 456 782"),
    ("au-medicare", "2123 45670 1"),
    ("au-abn", "51 824 753 556"),
    ("ca-sin", "130-692-544"),
    ("hu-taj", "111 111 110"),
    ("vat", "ATU13585627"),
    ("vat", "BE 0403.019.261"),
    ("vat", "BG175074752"),
    ("vat", "CY10259033P"),
    ("vat", "CZ25123891"),
    ("vat", "DE136695976"),
    ("vat", "DK13585628"),
    ("vat", "EE100931558"),
    ("vat", "EL094259216"),
    ("vat", "ESA13585625"),
    ("vat", "FI20774740"),
    ("vat", "FR40303265045"),
    ("vat", "GB980780684"),
    ("vat", "HU12892312"),
    ("vat", "IE6433435F"),
    ("vat", "IT00743110157"),
    ("vat", "LT119511515"),
    ("vat", "LU15027442"),
    ("vat", "LV40003521600"),
    ("vat", "MT11679112"),
    ("vat:", "NL004495445B01"),
    ("vat", "PT501964843"),
    ("vat", "RO18547290"),
    ("vat", "SE123456789701"),
    ("vat", "SI50223054"),
    ("vat", "SK2022749619"),
    ("vat", "CHE-116.281.710 MWST"),
    ("in-gstin", "27AAPFU0939F1ZV"),
    ("cn-uscc", "91110000600037341L"),
    ("kr-brn", "116-82-00276"),
    ("co-nit", "213.123.432-1"),
    ("ve-rif", "V-11470283-4"),
    ("gt-nit", "576937-K"),
    ("gt-nit", "80028061-0"),
    ("pe-ruc", "20512333797"),
    ("tr-vkn", "4540536920"),
    ("tw-ubn", "00501503"),
    ("no-org", "988 077 917"),
    ("fr-siren", "732829320"),
    ("fr-siret", "73282932000074"),
    ("pl-regon", "192598184"),
    ("au-acn", "004 085 616"),
    ("vn-mst", "0100233488"),
    ("ar-cbu", "2850590940090418135201"),
    ("es-ccc", "1234-1234-16 1234567890"),
    ("clabe", "032180000118359719"),
    ("kz-iin", "851231300134"),
    ("lu-id", "1893120105732"),
    ("lv-pk", "161175-19997"),
    ("ir-code", "0084575948"),
    ("mu-id", "J2906201304089"),
    ("zw-id", "50-025544-Q-12"),
    ("de-kvnr", "A123456780"),
    ("pl-card", "AYW036733"),
    ("nz-nhi", "ZAA0067"),
    ("nz-nhi", "ZBN77VL"),
    ("nz-ird", "49-091-850"),
    ("gb-utr", "1955839661"),
    ("fr-spi", "30 23 217 600 053"),
    ("es-ssn", "28 12345678 40"),
    ("do-rnc", "101-85004-3"),
    ("br-cnh", "97625655678"),
    ("br-voter", "106644440302"),
    ("br-pis", "120.56412.54-5"),
    ("sv-dui", "02495067-5"),
    ("orcid", "0000-0002-1825-0097"),
    ("id-nik", "3171011708450001"),
    ("base58check:25", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
    ("base58check:37", "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ"),
    ("bech32", "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4"),
    ("bech32", "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"),
]
# Without a check digit at their end.
_UNCHECKED = {
    "bic",
    "id-nik",
    "dk-cpr",
    "mrz",
    "is-kt",
    "kr-rrn",
    "au-medicare",
    "vat:",
    "zw-id",
}
_CHECKED = [row for row in _VALID if row[0] not in _UNCHECKED]


_SHIELD = load()
_RULES = {rule.id: rule.validator for rule in _SHIELD.rules if rule.validator}


def _holds(name: str, value: str) -> bool:
    parts = [part.partition(":") for part in _RULES.get(name, name).split("+")]
    return all(VALIDATORS[check](value, argument) for check, _, argument in parts)


@pytest.mark.parametrize(("rule", "value"), _VALID)
def test_a_published_example_holds(rule: str, value: str) -> None:
    assert _holds(rule, value)


@pytest.mark.parametrize(("rule", "value"), _CHECKED)
def test_an_example_with_one_other_digit_does_not_hold(rule: str, value: str) -> None:
    at = max(place for place, char in enumerate(value) if char.isdigit())
    others = [value[:at] + digit + value[at + 1 :] for digit in "0123456789" if digit != value[at]]
    assert sum(_holds(rule, other) for other in others) <= 1


@pytest.mark.parametrize("rule", sorted({rule for rule, _ in _VALID}))
def test_a_number_of_one_digit_repeated_holds_nowhere(rule: str) -> None:
    assert not any(_holds(rule, digit * count) for digit in "0123456789" for count in range(8, 20))


@pytest.mark.parametrize(
    "value",
    ["000-12-3456", "666-12-3456", "912-12-3456", "123-00-4567", "123-45-0000", "078-05-1120", "111-11-1111"],
)
def test_a_social_security_number_never_issued_is_not_found(value: str) -> None:
    assert "us-ssn" in _rules_for("His social security number: 536-90-4399")
    assert not {"us-ssn", "us-ssn-shape"} & _rules_for(f"His social security number: {value}")


def _rules_for(text: str) -> set[str]:
    return {one.rule for one in _SHIELD.scan(text, Direction.INBOUND).detections}


def test_a_card_of_no_known_issuer_does_not_hold_though_luhn_does() -> None:
    assert _holds("luhn", "9111111111111136")
    assert not _holds("card", "9111111111111136")


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=60) | st.text("0123456789abcdefXYZ-. _/", max_size=60))
def test_no_text_breaks_a_validator(text: str) -> None:
    for name in [*_RULES.values(), "firm", "person", "vat", "entropy"]:
        assert _holds(name, text) in (True, False)


def test_digits_of_another_script_are_no_digits() -> None:
    assert not _holds("fi-hetu", "13105\u00b2-308T")


def _token(prefix: str, body: str) -> str:
    number, written = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, place = divmod(number, 62)
        written = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[place] + written
    return prefix + body + written


def test_a_token_checksum_holds_for_its_own_body_only() -> None:
    token = _token("ghp_", "kD93mVtQ0zXbR7uYwPq2LfHs5NcAe1")
    assert _holds("github-checksum", token)
    assert not _holds("github-checksum", token[:-1] + ("a" if token[-1] != "a" else "b"))
    assert _holds("npm-checksum", _token("npm_", "kD93mVtQ0zXbR7uYwPq2LfHs5NcAe1"))


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("token", "holds"),
    [
        (f"{_part({'alg': 'HS256'})}.{_part({'sub': '7'})}.c2lnbmF0dXJlLWJ5dGVz", True),
        (f"{_part({'alg': 'none'})}.{_part({'sub': '7'})}.", True),
        (f"{_part({'alg': 'dir', 'enc': 'A128GCM'})}..aXY.Y2lwaGVy.dGFn", True),
        (f"{_part({'alg': 'HS256'})}.AAAAAAAA.c2lnbmF0dXJl", False),
        (f"{_part({'typ': 'map'})}.{_part({'sub': '7'})}.c2lnbmF0dXJl", False),
        (f"{_part(['alg'])}.{_part({'sub': '7'})}.c2lnbmF0dXJl", False),
        ("eyJhbGciOi", False),
    ],
)
def test_a_jwt_needs_a_header_that_names_its_algorithm(token: str, holds: bool) -> None:
    assert _holds("jwt", token) is holds


@pytest.mark.parametrize(
    "value",
    ["AKIAIOSFODNN7EXAMPLE", "your-key-here-1234", "${API_KEY}", "{{ token }}", "xxxxxxxxxxxxxxxxxxxx", "<token>",
     "00000000000000000000", "abcdefghijklmnopqrst", "A1234567890123456789", "aaaaaaaabbbbbbbbcccc", "REDACTED-9f3k2",
     "ops_eyJzaWdu...", "ops_eyJzaWdu.."],
)  # fmt: skip
def test_a_placeholder_is_told_from_a_secret(value: str) -> None:
    assert not _holds("not-placeholder", value)
    assert not _holds("secret", value)


def test_a_token_that_spells_the_alphabet_is_no_example_by_its_marks() -> None:
    assert _holds("not-example", "aBcDeFgHiJkLmNoPqRsT") and not _holds("not-placeholder", "aBcDeFgHiJkLmNoPqRsT")


@pytest.mark.parametrize("value", ["q7ZfP2vK9sLmX4tB8wRd", "9f86d081884c7d659a2feaa0c55ad015", "Kj_3-hQpW8zLm2Vx0Tt"])
def test_random_text_is_a_secret(value: str) -> None:
    assert _holds("secret", value) and _holds("not-placeholder", value) and _holds("not-wordy", value)


@pytest.mark.parametrize(
    "value",
    ["my_access_token_name", "generatedByDebuggingPurposesKey", "os.environ['KEY']", "settings.API_KEY", "get_token(1)",
     "user-service-v2-prod", "process.env.TOKEN2", "12345678901234567890", "release-2024-05-01-build",
     "X25519.secret_length", "PdfEncryptionKeySize.Key128Bit", "OAuthClientProvider", "id-Gost28147-89-None-KeyMeshing",
     "backups/2024/06/10/db-14e362d6.tar.gz", "ExtensionOID.AUTHORITY_KEY_IDENTIFIER",
     "mongodb://mongodb:mongodb@localhost2", "2016-09-08T21:47:36Z"],
)  # fmt: skip
def test_a_name_a_reference_or_a_number_is_no_secret(value: str) -> None:
    assert not _holds("secret", value)


@pytest.mark.parametrize("value", ["hunter22", "Tr0ub4dor&3", "s3cr3t!pw", "'Winter2031!'"])
def test_a_chosen_password_holds(value: str) -> None:
    assert _holds("password:strict", value)


@pytest.mark.parametrize(
    "value",
    ["password", "changeme", "$DB_PASSWORD", "None", "getpass()", "string", "********", "<password>", "self.password",
     "os.getenv(", "abc", "my_fake_secret2", "fakehashedpassword", "yourpassword1", "{{ pw }}", "your_password", "required", "config['pw']",
     "Kennwort", "contraseña", "/home/user/project", "MYSQL_NATIVE_PASSWORD", "test_login_2024_token_refresh", "12345",
     "至少8位", "8文字以上", "1219328376.07815"],
)  # fmt: skip
def test_what_stands_for_a_password_is_none(value: str) -> None:
    assert not _holds("password", value)


def test_a_strict_password_is_more_than_a_word_or_a_number() -> None:
    assert _holds("password", "sunshine") and not _holds("password:strict", "sunshine")
    assert not _holds("password:strict", "2024.05")


def test_basic_credentials_are_decoded() -> None:
    assert _holds("basic-credentials", base64.b64encode(b"deploy:R4inyDay!").decode())
    assert not _holds("basic-credentials", base64.b64encode(b"user:password").decode())
    assert not _holds("basic-credentials", base64.b64encode(b'{"alg":"HS256"}').decode())
    assert not _holds("basic-credentials", base64.b64encode(bytes(range(128, 160))).decode())


def test_a_seed_phrase_is_short_words_without_the_words_of_prose() -> None:
    words = "ribbon cactus velvet orbit lunar hazard magnet frozen pepper timber walnut galaxy"
    assert _holds("seed-phrase", words)
    assert not _holds("seed-phrase", words.replace("orbit", "the"))
    assert not _holds("seed-phrase", words + " one more")


def test_entropy_is_that_of_shannon() -> None:
    assert entropy_of("") == 0 and entropy_of("aaaa") == 0 and entropy_of("abcd") == 2
    assert _holds("entropy:2", "abcd") and not _holds("entropy:2.1", "abcd")


def test_a_uuid_is_told_from_a_key() -> None:
    assert not _holds("not-uuid", "8f14e45f-ceea-467f-a9d1-6a1b2c3d4e5f")
    assert _holds("not-uuid", "8f14e45fceea467fa9d16a1b2c3d4e5f")


@pytest.mark.parametrize(
    ("value", "holds"),
    [("8.8.4.4", True), ("10.1.2.3", True), ("127.0.0.1", False), ("0.0.0.0", False), ("255.255.255.0", False),
     ("5.5.2.824", False), ("2a02:8109::1", True), ("::1", False), ("192.0.2.7", False)],
)  # fmt: skip
def test_an_ip_address_is_one_of_a_host(value: str, holds: bool) -> None:
    assert _holds("ip", value) is holds


def test_a_phone_number_has_seven_to_fifteen_digits() -> None:
    assert _holds("phone", "+49 30 4029183") and _holds("phone", "259.735.7502x459")
    assert not _holds("phone", "402 918") and not _holds("phone", "000 000 0000")
