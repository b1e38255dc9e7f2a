"""The codec alone: the login against the RFC's vector, answers however they are cut, and servers that lie."""

import base64
import enum
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import SetupError
from gateway.store.postgres_protocol import ProtocolFault, Reader, ServerError, message, startup, statement
from gateway.store.postgres_scram import Scram, channel_binding, prepare_password

# RFC 7677, 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
PROOF = f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
VERIFIER = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def auth(step: int, body: bytes = b"") -> bytes:
    return message(b"R", struct.pack("!i", step) + body)


def described(*columns: tuple[str, int]) -> bytes:
    fields = (name.encode() + b"\0" + struct.pack("!IhIhih", 0, 0, oid, -1, -1, 0) for name, oid in columns)
    return message(b"T", struct.pack("!h", len(columns)) + b"".join(fields))


def row(*values: bytes | None) -> bytes:
    parts = (b"\xff" * 4 if one is None else struct.pack("!i", len(one)) + one for one in values)
    return message(b"D", struct.pack("!h", len(values)) + b"".join(parts))


SASL = auth(10, b"SCRAM-SHA-256\0\0")
READY = message(b"Z", b"I")
LOGIN = (SASL, auth(11, CHALLENGE), auth(12, VERIFIER), auth(0), message(b"S", b"client_encoding\0UTF8\0"), READY)
DESCRIBED = described(("name", 25), ("count", 20), ("sum", 1700), ("is_on", 16), ("raw", 17))
ANSWER = (
    *(message(b"1", b""), message(b"2", b""), DESCRIBED),
    *(
        row("Zoë".encode(), b"-7", b"2.50", b"t", b"\\x00ff"),
        row(None, None, b"12", b"f", None),
        message(b"C", b"SELECT 2\0"),
    ),
    *(message(b"1", b""), message(b"2", b""), message(b"n", b""), message(b"C", b"UPDATE 3\0"), READY),
)
ROWS = [["Zoë", -7, 2.5, True, b"\0\xff"], [None, None, 12, False, None]]
NOTICE = message(b"N", b"SNOTICE\0C00000\0Mhere\0\0")
ERROR = message(b"E", b"SERROR\0C23505\0Mtaken\0\0")


def reader() -> Reader:
    return Reader(Scram("pencil", NONCE, user="user"))


def opened() -> Reader:
    one = reader()
    one.feed(b"".join(LOGIN))
    one.expect(2)
    return one


def check(one: Reader) -> None:
    first, second = one.results
    assert [list(each) for each in first.rows] == ROWS and type(first.rows[1]["sum"]) is int
    assert first.rows[0]["count"] == first.rows[0][1] == -7 and first.rows[0]["is_on"] is True
    assert (first.rowcount, second.rowcount, second.rows, one.status, one.is_waiting) == (2, 3, [], "I", False)


def test_the_login_is_the_one_of_the_rfc() -> None:
    scram = Scram("pencil", NONCE, user="user")
    assert scram.answer(10, b"SCRAM-SHA-256\0\0").endswith(f"n,,n=user,r={NONCE}".encode())
    assert scram.answer(11, CHALLENGE) == PROOF
    assert not scram.is_proved
    scram.answer(12, VERIFIER)
    assert scram.is_proved


def test_an_answer_is_read_however_it_is_cut() -> None:
    login, answer = b"".join(LOGIN), b"".join(ANSWER)
    for cut in range(len(login)):
        one = reader()
        one.feed(login[:cut])
        assert one.is_waiting
        one.feed(login[cut:])
        assert not one.is_waiting and one.to_send.endswith(PROOF)
    for cut in range(len(answer)):
        one = opened()
        one.feed(answer[:cut])
        assert one.is_waiting
        one.feed(answer[cut:])
        check(one)
    one = opened()
    for byte in answer:
        one.feed(bytes([byte]))
    check(one)


def test_a_notice_may_come_anywhere() -> None:
    for place in range(len(LOGIN) + 1):
        one = reader()
        one.feed(b"".join((*LOGIN[:place], NOTICE, *LOGIN[place:])))
        one.expect(2)
        for each in ANSWER:
            one.feed(NOTICE + each)
        one.feed(NOTICE)
        check(one)


def test_after_an_error_the_next_answer_is_whole() -> None:
    one = opened()
    one.feed(b"".join((*ANSWER[:6], ERROR)))
    assert one.is_waiting
    one.feed(message(b"Z", b"E"))
    assert one.error and (one.error.code, one.error.message, one.status) == ("23505", "taken", "E")
    assert "taken" not in str(one.error)  # the server may quote a value there
    one.expect(2)
    one.feed(b"".join(ANSWER))
    assert one.error is None
    check(one)


LIES = {
    "negative": b"D\xff\xff\xff\xff",
    "short": b"C\0\0\0\3",
    "long": b"D" + struct.pack("!i", (256 << 20) + 1),
    "value beyond the row": DESCRIBED + row(b"a", b"1", b"1", b"t", b"\\x")[:-6] + struct.pack("!i", 900) + b"\\x",
    "negative value": described(("a", 25)) + message(b"D", b"\0\1\xff\xff\xff\xfe"),
    "too many values": described(("a", 25)) + row(b"a", b"b"),
    "row without description": row(b"a"),
    "cut description": message(b"T", b"\0\2a\0"),
    "no number": described(("a", 20)) + row(b"one"),
    "no UTF-8": described(("a", 25)) + row(b"\xff"),
    "escaped bytes": described(("a", 17)) + row(b"\\001"),
    "unknown": message(b"G", b"\0\0\0"),
    "login again": auth(10, b"SCRAM-SHA-256\0\0"),
    "too few results": READY,
    "one answer too many": b"".join(ANSWER) + READY,
    "unknown state": b"".join(ANSWER[:-1]) + message(b"Z", b"?"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_server_that_lies_is_found_out(name: str) -> None:
    with pytest.raises(ProtocolFault):
        opened().feed(LIES[name])


@given(st.data())
def test_no_bytes_raise_anything_else(data: st.DataObject) -> None:
    raw = bytearray(b"".join(ANSWER))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        opened().feed(bytes(raw))
    except (ProtocolFault, SetupError):
        pass


REFUSED = {
    "cleartext": (auth(3), SetupError),
    "MD5": (auth(5, b"salt"), SetupError),
    "no proof": (SASL + auth(11, CHALLENGE) + auth(0), SetupError),
    "no question": (auth(0), SetupError),
    "wrong proof": (SASL + auth(11, CHALLENGE) + auth(12, b"v=AAAA"), SetupError),
    "few rounds": (SASL + auth(11, CHALLENGE.replace(b"4096", b"1")), SetupError),
    "many rounds": (SASL + auth(11, CHALLENGE.replace(b"4096", b"9999999")), SetupError),
    "other nonce": (SASL + auth(11, CHALLENGE.replace(b"rOpr", b"rOpq")), ProtocolFault),
    "own nonce": (SASL + auth(11, CHALLENGE.replace(b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b"")), ProtocolFault),
    "proof first": (SASL + auth(12, VERIFIER), ProtocolFault),
    "twice": (SASL + SASL, ProtocolFault),
    "ready before the login": (READY, ProtocolFault),
    "a long message": (b"N" + struct.pack("!i", 70_000), ProtocolFault),
    "another encoding": (message(b"S", b"server_encoding\0LATIN1\0"), SetupError),
    "refused": (ERROR, ServerError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_login_that_proves_nothing_is_refused(name: str) -> None:
    raw, error = REFUSED[name]
    with pytest.raises(error) as found:
        reader().feed(raw)
    assert "pencil" not in repr(found.value)


def test_a_password_is_prepared_as_the_server_does() -> None:
    cases = {
        "I\u00adX": "IX",
        "\u00aa": "a",
        "\u2168": "IX",
        "a\u00a0b": "a b",
        "\u0627\u0031": "\u0627\u0031",
        "a\u0007é": "a\u0007é",
    }
    assert {text: prepare_password(text).decode() for text in cases} == cases


def test_the_login_is_bound_to_tls_where_both_can() -> None:
    scram, plus = b"SCRAM-SHA-256\0", b"SCRAM-SHA-256-PLUS\0"
    bound = Scram("a", NONCE, binding=b"hash")
    assert bound.answer(10, plus + scram + b"\0").startswith(plus + b"\0\0\0\x31p=tls-server-end-point,,")
    proof = bound.answer(11, CHALLENGE)
    assert proof.startswith(b"c=" + base64.b64encode(b"p=tls-server-end-point,,hash") + b",r=")
    downgraded = Scram("a", NONCE, binding=b"hash").answer(10, scram + b"\0")  # by somebody between, as the server sees
    assert downgraded.startswith(scram + b"\0\0\0\x1cy,,n=")
    assert channel_binding(b"\x30\x82") is channel_binding(b"no certificate") is None


def test_what_is_sent() -> None:
    kind = enum.StrEnum("kind", {"A": "alpha"})
    sent = statement("SELECT $1", [kind["A"], True, 2**80, 0.1, b"\xff", None])
    assert sent.startswith(b"P\0\0\0\x29\0SELECT $1\0\0\6") and b"\0\0\0\5alpha\0\0\0\1t\0\0\0\x19" in sent
    assert b"\0\0\0\x030.1\0\0\0\4\\xff\xff\xff\xff\xff" in sent
    assert startup(user="a") == b"\0\0\0\x10\0\3\0\0user\0a\0\0"
    for values, error in (([[1]], TypeError), (["\ud800"], ValueError)):
        with pytest.raises(error):
            statement("SELECT $1", values)
    with pytest.raises(ValueError):
        statement("SELECT '\0'", [])
