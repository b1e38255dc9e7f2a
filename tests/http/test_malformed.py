"""Bytes that are no good request, sent to a real server: the exact status, then the end of the connection."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

Serve = Callable[..., AbstractAsyncContextManager[Any]]

HOST = b"Host: here\r\n"


def get(*lines: bytes, first: bytes = b"GET / HTTP/1.1", host: bytes = HOST) -> bytes:
    return first + b"\r\n" + host + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def post(*lines: bytes, body: bytes = b"") -> bytes:
    return get(*lines, first=b"POST / HTTP/1.1") + body


CHUNKED = b"Transfer-Encoding: chunked"

CASES: dict[str, tuple[int, bytes]] = {
    # The request line.
    "no version": (400, b"GET /\r\n\r\n"),
    "two spaces": (400, get(first=b"GET  / HTTP/1.1")),
    "three words and more": (400, get(first=b"GET / / HTTP/1.1")),
    "tab for a space": (400, get(first=b"GET\t/ HTTP/1.1")),
    "blank at the end": (400, get(first=b"GET / HTTP/1.1 ")),
    "blank at the start": (400, get(first=b" GET / HTTP/1.1")),
    "method is no token": (400, get(first=b"GE(T / HTTP/1.1")),
    "method is empty": (400, get(first=b" / HTTP/1.1")),
    "lower-case protocol": (400, get(first=b"GET / http/1.1")),
    "other protocol": (400, get(first=b"GET / ICAP/1.0")),
    "version of two digits": (400, get(first=b"GET / HTTP/1.10")),
    "version without minor": (400, get(first=b"GET / HTTP/1")),
    "two empty lines first": (400, b"\r\n\r\n" + get()),
    "only an empty line and LF": (400, b"\n" + get()),
    "version 0.9": (505, get(first=b"GET / HTTP/0.9")),
    "version 1.2": (505, get(first=b"GET / HTTP/1.2")),
    "version 2.0": (505, get(first=b"GET / HTTP/2.0")),
    "version 9.9": (505, get(first=b"GET / HTTP/9.9")),
    "preface of HTTP/2": (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "TLS on a plain port": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    "raw byte in the target": (400, get(first=b"GET /\xff HTTP/1.1")),
    "NUL in the target": (400, get(first=b"GET /\x00 HTTP/1.1")),
    # The target.
    "asterisk form": (400, get(first=b"OPTIONS * HTTP/1.1")),
    "authority form": (400, get(first=b"CONNECT here:443 HTTP/1.1")),
    "relative target": (400, get(first=b"GET a HTTP/1.1")),
    "fragment": (400, get(first=b"GET /a#b HTTP/1.1")),
    "fragment in the query": (400, get(first=b"GET /a?b#c HTTP/1.1")),
    "fragment in an escaped path": (400, get(first=b"GET /a%20b#c HTTP/1.1")),
    "encoded slash": (400, get(first=b"GET /a%2fb HTTP/1.1")),
    "encoded slash in capitals": (400, get(first=b"GET /a%2Fb HTTP/1.1")),
    "encoded backslash": (400, get(first=b"GET /a%5cb HTTP/1.1")),
    "backslash": (400, get(first=b"GET /a\\b HTTP/1.1")),
    "encoded NUL": (400, get(first=b"GET /a%00 HTTP/1.1")),
    "encoded line break": (400, get(first=b"GET /a%0a HTTP/1.1")),
    "encoded DEL": (400, get(first=b"GET /a%7f HTTP/1.1")),
    "malformed escape": (400, get(first=b"GET /a%zz HTTP/1.1")),
    "cut escape": (400, get(first=b"GET /a%2 HTTP/1.1")),
    "escape that is no UTF-8": (400, get(first=b"GET /a%ff HTTP/1.1")),
    "two slashes": (400, get(first=b"GET //a HTTP/1.1")),
    "two slashes within": (400, get(first=b"GET /a//b HTTP/1.1")),
    "two slashes at the end": (400, get(first=b"GET /a// HTTP/1.1")),
    "dot segment": (400, get(first=b"GET /a/./b HTTP/1.1")),
    "dot segment at the end": (400, get(first=b"GET /a/. HTTP/1.1")),
    "dot-dot segment": (400, get(first=b"GET /a/../b HTTP/1.1")),
    "dot-dot at the end": (400, get(first=b"GET /.. HTTP/1.1")),
    "encoded dot-dot": (400, get(first=b"GET /a/%2e%2e/b HTTP/1.1")),
    "half encoded dot-dot": (400, get(first=b"GET /a/.%2E/b HTTP/1.1")),
    "absolute form with another host": (400, get(first=b"GET http://there/ HTTP/1.1")),
    "absolute form with a user": (400, get(first=b"GET http://me@here/ HTTP/1.1")),
    "absolute form of another scheme": (400, get(first=b"GET ftp://here/ HTTP/1.1")),
    "absolute form without a host": (400, get(first=b"GET http:/// HTTP/1.1")),
    # Host.
    "no Host": (400, get(host=b"")),
    "no Host but other fields": (400, get(b"Accept: */*", host=b"")),
    "empty Host": (400, get(host=b"Host:\r\n")),
    "blank Host": (400, get(host=b"Host: \t\r\n")),
    "two Hosts": (400, get(host=HOST + b"Host: there\r\n")),
    "two equal Hosts": (400, get(host=HOST + HOST)),
    "list of Hosts": (400, get(host=b"Host: here, there\r\n")),
    "Host with a path": (400, get(host=b"Host: here/there\r\n")),
    "Host with a user": (400, get(host=b"Host: me@here\r\n")),
    "Host with a blank": (400, get(host=b"Host: he re\r\n")),
    "Host with a port that is no number": (400, get(host=b"Host: here:http\r\n")),
    "Host with a port too high": (400, get(host=b"Host: here:65536\r\n")),
    "Host with an open bracket": (400, get(host=b"Host: [::1\r\n")),
    "Host with a malformed address": (400, get(host=b"Host: [:::1]\r\n")),
    "Host that is not ASCII": (400, get(host=b"Host: h\xe9re\r\n")),
    # Lines.
    "bare LF after the request line": (400, b"GET / HTTP/1.1\nHost: here\r\n\r\n"),
    "bare LF after a field": (400, b"GET / HTTP/1.1\r\nHost: here\nA: b\r\n\r\n"),
    "bare LF everywhere": (400, b"GET / HTTP/1.1\nHost: here\n\n"),
    "bare LF at the end": (400, b"GET / HTTP/1.1\r\nHost: here\r\n\n"),
    "bare CR": (400, get(b"A: b\rC: d")),
    "CR CR LF": (400, get(b"A: b\r")),
    "folded line": (400, get(b"A: b", b" c")),
    "folded line with a tab": (400, get(b"A: b", b"\tc")),
    "folded first line": (400, get(b" A: b", host=b"")),
    "NUL in a value": (400, get(b"A: b\x00c")),
    "control byte in a value": (400, get(b"A: b\x07c")),
    "DEL in a value": (400, get(b"A: b\x7fc")),
    "blank before the colon": (400, get(b"A : b")),
    "no colon": (400, get(b"A")),
    "no name": (400, get(b": b")),
    "name is no token": (400, get(b"A(): b")),
    "name is not ASCII": (400, get(b"\xc4: b")),
    "two keys": (400, get(b"Authorization: Bearer a", b"Authorization: Bearer b")),
    "two content types": (400, get(b"Content-Type: a/b", b"content-type: a/b")),
    # Framing.
    "two lengths": (400, post(b"Content-Length: 1", b"Content-Length: 2", body=b"ab")),
    "two equal lengths": (400, post(b"Content-Length: 1", b"Content-Length: 1", body=b"a")),
    "list of equal lengths": (400, post(b"Content-Length: 1, 1", body=b"a")),
    "length with a sign": (400, post(b"Content-Length: +1", body=b"a")),
    "negative length": (400, post(b"Content-Length: -1")),
    "hexadecimal length": (400, post(b"Content-Length: 0x1", body=b"a")),
    "length with an underscore": (400, post(b"Content-Length: 1_0", body=b"a" * 10)),
    "length in other digits": (400, post("Content-Length: ١".encode(), body=b"a")),
    "empty length": (400, post(b"Content-Length:")),
    "length with a blank in it": (400, post(b"Content-Length: 1 0")),
    "length over the limit": (413, post(b"Content-Length: 1001")),
    "length of twenty digits": (413, post(b"Content-Length: 99999999999999999999")),
    "length beside a coding": (400, post(b"Content-Length: 5", CHUNKED, body=b"0\r\n\r\n")),
    "coding beside a length": (400, post(CHUNKED, b"Content-Length: 5", body=b"0\r\n\r\n")),
    "two codings": (400, post(CHUNKED, CHUNKED, body=b"0\r\n\r\n")),
    "chunked twice": (400, post(b"Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n")),
    "empty coding": (400, post(b"Transfer-Encoding:")),
    "coding with a parameter": (400, post(b"Transfer-Encoding: chunked;a=b")),
    "coding in quotes": (400, post(b'Transfer-Encoding: "chunked"')),
    "coding with a form feed": (400, post(b"Transfer-Encoding: \x0cchunked")),
    "coding that is not ASCII": (400, post(b"Transfer-Encoding: chunked\xa0")),
    "coding in HTTP/1.0": (400, get(CHUNKED, first=b"POST / HTTP/1.0") + b"0\r\n\r\n"),
    "unknown coding": (501, post(b"Transfer-Encoding: gzip")),
    "identity coding": (501, post(b"Transfer-Encoding: identity")),
    "coding before chunked": (501, post(b"Transfer-Encoding: gzip, chunked")),
    "coding that looks like chunked": (501, post(b"Transfer-Encoding: xchunked")),
    "chunk size with a sign": (400, post(CHUNKED, body=b"+1\r\na\r\n0\r\n\r\n")),
    "chunk size with 0x": (400, post(CHUNKED, body=b"0x1\r\na\r\n0\r\n\r\n")),
    "chunk size with a blank after it": (400, post(CHUNKED, body=b"1 \r\na\r\n0\r\n\r\n")),
    "chunk size with a blank before it": (400, post(CHUNKED, body=b" 1\r\na\r\n0\r\n\r\n")),
    "chunk size of nine digits": (400, post(CHUNKED, body=b"000000001\r\na\r\n0\r\n\r\n")),
    "chunk size of twenty digits": (400, post(CHUNKED, body=b"f" * 20 + b"\r\n")),
    "empty chunk size": (400, post(CHUNKED, body=b"\r\n\r\n")),
    "chunk size after bare LF": (400, post(CHUNKED, body=b"1\na\r\n0\r\n\r\n")),
    "chunk that is longer": (400, post(CHUNKED, body=b"1\r\nab\r\n0\r\n\r\n")),
    "chunk without its end": (400, post(CHUNKED, body=b"1\r\na0\r\n\r\n")),
    "chunk with CR and more": (400, post(CHUNKED, body=b"1\r\na\rb")),
    "chunk with bare LF as its end": (400, post(CHUNKED, body=b"1\r\na\n0\r\n\r\n")),
    "chunk extension without end": (400, post(CHUNKED, body=b"1;" + b"a" * 300)),
    "chunk extension too long": (400, post(CHUNKED, body=b"1;" + b"a" * 300 + b"\r\na\r\n0\r\n\r\n")),
    "chunk extension with a control byte": (400, post(CHUNKED, body=b"1;\x01\r\na\r\n0\r\n\r\n")),
    "trailer that is no field": (400, post(CHUNKED, body=b"0\r\nab\r\n\r\n")),
    "trailers too long": (400, post(CHUNKED, body=b"0\r\n" + b"a: b\r\n" * 2000)),
    "trailer without end": (400, post(CHUNKED, body=b"0\r\na:" + b"b" * 9000)),
    "chunks over the limit": (413, post(CHUNKED, body=b"1f4\r\n" + b"a" * 500 + b"\r\n1f5\r\n" + b"a" * 501)),
    "expectation of another kind": (417, post(b"Expect: 200-ok", b"Content-Length: 1")),
    "empty expectation": (417, post(b"Expect:", b"Content-Length: 1")),
    # Sizes.
    "request line too long": (414, get(first=b"GET /" + b"a" * 16384 + b" HTTP/1.1")),
    "request line without end": (414, b"GET /" + b"a" * 20000),
    "request line over the whole head": (414, get(first=b"GET /" + b"a" * 60000 + b" HTTP/1.1")),
    "field too long": (431, get(b"A: " + b"b" * 16384)),
    "field without end": (431, get(b"A: b")[:-2] + b"B: " + b"b" * 20000),
    "head too long": (431, get(*(b"A: " + b"b" * 10000 for _ in range(4)))),
    "head too long in short lines": (431, get(*(b"A: " + b"b" * 1000 for _ in range(40)))),
    "head too long without end": (431, get(*(b"A: " + b"b" * 10000 for _ in range(4)))[:-2]),
    "too many fields": (431, get(*(b"A: b" for _ in range(100)))),
    "thousands of fields": (431, get(*(b"A: b" for _ in range(5000)))),
}

CODES = {
    400: b"invalid_request",
    413: b"body_too_large",
    414: b"uri_too_long",
    417: b"expectation_failed",
    431: b"headers_too_large",
    501: b"not_implemented",
    505: b"http_version_not_supported",
}


@pytest.mark.parametrize("name", CASES)
async def test_a_malformed_request_is_refused_and_the_connection_ends(serve: Serve, name: str) -> None:
    status, raw = CASES[name]
    async with serve() as house, house.wire() as wire:
        answer = await wire.ask(raw)
        assert (answer.status, answer.body) == (status, CODES[status])
        assert answer.headers["connection"] == "close"
        assert await wire.end() == b""


@pytest.mark.parametrize("name", ["NUL in a value", "bare LF everywhere", "two Hosts", "chunk that is longer"])
async def test_a_malformed_request_is_refused_however_it_is_cut(serve: Serve, name: str) -> None:
    status, raw = CASES[name]
    async with serve() as house:
        for cut in range(1, len(raw)):
            async with house.wire() as wire:
                await wire.send(raw[:cut])
                try:
                    await wire.send(raw[cut:])
                except OSError:
                    pass
                assert (await wire.answer()).status == status


GOOD: dict[str, tuple[bytes, bytes]] = {
    "plain": (get(), b"GET / ? 0"),
    "query": (get(first=b"GET /a?b=%2f&c HTTP/1.1"), b"GET /a ?b=%2f&c 0"),
    "empty query": (get(first=b"GET /a? HTTP/1.1"), b"GET /a ? 0"),
    "one empty line first": (b"\r\n" + get(), b"GET / ? 0"),
    "escapes that mean themselves": (get(first=b"GET /%61%20b HTTP/1.1"), b"GET /a b ? 0"),
    "dots that are no segment": (get(first=b"GET /.well-known/a..b/... HTTP/1.1"), b"GET /.well-known/a..b/... ? 0"),
    "slash at the end": (get(first=b"GET /a/ HTTP/1.1"), b"GET /a/ ? 0"),
    "slash at the end and an escape": (get(first=b"GET /%61/ HTTP/1.1"), b"GET /a/ ? 0"),
    "absolute form": (get(first=b"GET http://HERE/a?b HTTP/1.1"), b"GET /a ?b 0"),
    "absolute form without a path": (get(first=b"GET https://here HTTP/1.1"), b"GET / ? 0"),
    "Host with a port": (get(host=b"Host: here:8080\r\n"), b"GET / ? 0"),
    "Host that is an address": (get(host=b"Host: [::1]:80\r\n"), b"GET / ? 0"),
    "empty value": (get(b"A:"), b"GET / ? 0"),
    "value that is not ASCII": (get(b"A: \xe9"), b"GET / ? 0"),
    "value with a tab": (get(b"A: b\tc"), b"GET / ? 0"),
    "repeated list": (get(b"Accept: a/b", b"Accept: c/d"), b"GET / ? 0"),
    "method of its own": (get(first=b"PURGE / HTTP/1.1"), b"PURGE / ? 0"),
    "ninety-nine fields": (get(*(b"A: b" for _ in range(99))), b"GET / ? 0"),
    "head of nearly the limit": (get(*(b"A: " + b"b" * 8000 for _ in range(4))), b"GET / ? 0"),
    "keep-alive": (get(b"Connection: keep-alive"), b"GET / ? 0"),
    "other connection options": (get(b"Connection: TE", b"TE: trailers"), b"GET / ? 0"),
    "upgrade is not taken": (get(b"Connection: upgrade", b"Upgrade: h2c"), b"GET / ? 0"),
    "body": (post(b"Content-Length: 3", body=b"abc"), b"POST / ? 3"),
    "body at the limit": (post(b"Content-Length: 1000", body=b"a" * 1000), b"POST / ? 1000"),
    "length with zeros": (post(b"Content-Length: 0000000000003", body=b"abc"), b"POST / ? 3"),
    "no body": (post(), b"POST / ? 0"),
    "chunks": (post(CHUNKED, body=b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"), b"POST / ? 13"),
    "no chunk": (post(b"transfer-encoding: CHUNKED", body=b"0\r\n\r\n"), b"POST / ? 0"),
    "chunks with extensions": (post(CHUNKED, body=b'3;a="b c"\r\nabc\r\n0;d\r\n\r\n'), b"POST / ? 3"),
    "chunks with trailers": (post(CHUNKED, body=b"3\r\nabc\r\n0\r\nHost: there\r\n\r\n"), b"POST / ? 3"),
}


@pytest.mark.parametrize("name", GOOD)
async def test_an_unusual_but_good_request_is_answered_and_the_connection_stays_open(serve: Serve, name: str) -> None:
    raw, body = GOOD[name]
    async with serve() as house, house.wire() as wire:
        answer = await wire.ask(raw)
        assert (answer.status, answer.body) == (200, body)
        assert (await wire.ask(get())).body == b"GET / ? 0"


@pytest.mark.parametrize("name", GOOD)
async def test_a_good_request_is_answered_the_same_byte_by_byte(serve: Serve, name: str) -> None:
    raw, body = GOOD[name]
    async with serve() as house, house.wire() as wire:
        for at in range(0, len(raw), max(1, len(raw) // 200)):
            await wire.send(raw[at : at + max(1, len(raw) // 200)])
        assert (await wire.answer()).body == body


ALLOWED = frozenset({"here", "there:81", "::1"})


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"Host: here", 200),
        (b"Host: HERE.", 200),
        (b"Host: here:8080", 200),
        (b"Host: there:81", 200),
        (b"Host: [::1]:80", 200),
        (b"Host: there", 421),
        (b"Host: there:82", 421),
        (b"Host: here.evil.example", 421),
        (b"Host: here:x", 400),
    ],
)
@pytest.mark.parametrize("more", [(), (b"A:",)])
async def test_only_allowed_hosts_are_answered(serve: Serve, host: bytes, more: tuple[bytes, ...], status: int) -> None:
    async with serve(allowed_hosts=ALLOWED) as house, house.wire() as wire:
        assert (await wire.ask(get(*more, host=host + b"\r\n"))).status == status


async def test_without_a_host_http10_is_answered_where_every_host_is_allowed(serve: Serve) -> None:
    raw = b"GET / HTTP/1.0\r\n\r\n"
    async with serve() as house, house.wire() as wire:
        assert (await wire.ask(raw)).status == 200
        assert await wire.end() == b""
    async with serve(allowed_hosts=ALLOWED) as house, house.wire() as wire:
        answer = await wire.ask(raw)
        assert (answer.status, answer.body) == (421, b"host_not_allowed")
