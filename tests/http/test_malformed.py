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
    "escaped escape of a slash": (400, get(first=b"GET /a%252fb HTTP/1.1")),
    "escaped escape of a slash in capitals": (400, get(first=b"GET /a%252Fb HTTP/1.1")),
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
    # The request line, in odder forms.
    "CR alone after the request line": (400, b"GET / HTTP/1.1\rHost: here\r\n\r\n"),
    "vertical tab for a space": (400, get(first=b"GET\x0b/ HTTP/1.1")),
    "form feed for a space": (400, get(first=b"GET\x0c/ HTTP/1.1")),
    "no-break space for a space": (400, get(first=b"GET\xa0/ HTTP/1.1")),
    "version with a blank in it": (400, get(first=b"GET / HTTP/1. 1")),
    "version with a sign": (400, get(first=b"GET / HTTP/+1.1")),
    "version in other digits": (400, get(first="GET / HTTP/١.١".encode())),
    "version with a comma": (400, get(first=b"GET / HTTP/1,1")),
    "no slash in the version": (400, get(first=b"GET / HTTP1.1")),
    "something after the version": (400, get(first=b"GET / HTTP/1.1x")),
    "answer for a request": (400, get(first=b"HTTP/1.1 200 OK")),
    "method with a colon": (400, get(first=b"GET: / HTTP/1.1")),
    "method with a NUL": (400, get(first=b"GE\x00T / HTTP/1.1")),
    "method that is not ASCII": (400, get(first=b"G\xc9T / HTTP/1.1")),
    "method in quotes": (400, get(first=b'"GET" / HTTP/1.1')),
    "no target": (400, get(first=b"GET HTTP/1.1")),
    "byte order mark first": (400, b"\xef\xbb\xbf" + get()),
    "NUL first": (400, b"\x00" + get()),
    "three empty lines first": (400, b"\r\n\r\n\r\n" + get()),
    "version 3.0": (505, get(first=b"GET / HTTP/3.0")),
    "version 1.9": (505, get(first=b"GET / HTTP/1.9")),
    "version 0.1": (505, get(first=b"GET / HTTP/0.1")),
    "preface of HTTP/2 cut short": (505, b"PRI * HTTP/2.0\r\n\r\n"),
    "SSH on an HTTP port": (400, b"SSH-2.0-OpenSSH_9.6\r\n\r\n"),
    "SMTP on an HTTP port": (400, b"EHLO here\r\n\r\n"),
    "proxy protocol before the request": (400, b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + get()),
    "proxy protocol 2 before the request": (400, b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + get()),
    # The target, in odder forms.
    "overlong UTF-8 slash": (400, get(first=b"GET /a%c0%afb HTTP/1.1")),
    "overlong UTF-8 dot": (400, get(first=b"GET /a/%c0%ae%c0%ae/b HTTP/1.1")),
    "encoded surrogate": (400, get(first=b"GET /a%ed%a0%80 HTTP/1.1")),
    "escape of an escape's slash in the wide form": (400, get(first=b"GET /a%u002fb HTTP/1.1")),
    "encoded carriage return": (400, get(first=b"GET /a%0d%0aA:b HTTP/1.1")),
    "encoded tab": (400, get(first=b"GET /a%09b HTTP/1.1")),
    "encoded escape": (400, get(first=b"GET /a%1b HTTP/1.1")),
    "encoded slash first": (400, get(first=b"GET %2fa HTTP/1.1")),
    "dot first": (400, get(first=b"GET ./a HTTP/1.1")),
    "dot segment encoded": (400, get(first=b"GET /a/%2e/b HTTP/1.1")),
    "dot segment encoded at the end": (400, get(first=b"GET /a/%2E HTTP/1.1")),
    "dot-dot encoded in the first half": (400, get(first=b"GET /a/%2e./b HTTP/1.1")),
    "dot-dot after a backslash": (400, get(first=b"GET /a\\..\\b HTTP/1.1")),
    "dot-dot after an encoded backslash": (400, get(first=b"GET /a/..%5cb HTTP/1.1")),
    "from the public path into the internal one": (400, get(first=b"GET /api/v1/../config/api-keys HTTP/1.1")),
    "from the public path into the internal one, encoded": (
        400,
        get(first=b"GET /api/v1/%2e%2e/config/api-keys HTTP/1.1"),
    ),
    "two slashes in front of the internal path": (400, get(first=b"GET //api/config/api-keys HTTP/1.1")),
    "quotation mark in the target": (400, get(first=b'GET /a"b HTTP/1.1')),
    "angle bracket in the target": (400, get(first=b"GET /<a> HTTP/1.1")),
    "bar in the target": (400, get(first=b"GET /a|b HTTP/1.1")),
    "caret in the target": (400, get(first=b"GET /a^b HTTP/1.1")),
    "brace in the target": (400, get(first=b"GET /{a} HTTP/1.1")),
    "backtick in the target": (400, get(first=b"GET /a`b HTTP/1.1")),
    "raw UTF-8 in the target": (400, get(first="GET /é HTTP/1.1".encode())),
    "raw byte in the query": (400, get(first=b"GET /?\xff HTTP/1.1")),
    "NUL in the query": (400, get(first=b"GET /?a=\x00 HTTP/1.1")),
    "DEL in the target": (400, get(first=b"GET /\x7f HTTP/1.1")),
    "absolute form with another port": (400, get(first=b"GET http://here:81/ HTTP/1.1")),
    "absolute form with a path that climbs": (400, get(first=b"GET http://here/a/../b HTTP/1.1")),
    "absolute form of a file": (400, get(first=b"GET file:///etc/passwd HTTP/1.1")),
    "absolute form with one slash": (400, get(first=b"GET http:/here/ HTTP/1.1")),
    "scheme-relative target": (400, get(first=b"GET //there/ HTTP/1.1")),
    "asterisk with GET": (400, get(first=b"GET * HTTP/1.1")),
    "host and port with GET": (400, get(first=b"GET here:80 HTTP/1.1")),
    # Host, in odder forms.
    "Host with a query": (400, get(host=b"Host: here?a\r\n")),
    "Host with a fragment": (400, get(host=b"Host: here#a\r\n")),
    "Host with a scheme": (400, get(host=b"Host: http://here\r\n")),
    "Host with an empty port and more": (400, get(host=b"Host: here::80\r\n")),
    "Host with a negative port": (400, get(host=b"Host: here:-1\r\n")),
    "Host with a signed port": (400, get(host=b"Host: here:+80\r\n")),
    "Host with a backslash": (400, get(host=b"Host: here\\there\r\n")),
    "Host with angle brackets": (400, get(host=b"Host: <here>\r\n")),
    "Host with a quotation mark": (400, get(host=b'Host: here"\r\n')),
    "Host with a percent sign": (400, get(host=b"Host: here%00\r\n")),
    "Host with an encoded line break": (400, get(host=b"Host: here%0d%0aA: b\r\n")),
    "Host with a NUL": (400, get(host=b"Host: here\x00there\r\n")),
    "Host with a tab in it": (400, get(host=b"Host: he\tre\r\n")),
    "Host with a closing bracket alone": (400, get(host=b"Host: ::1]\r\n")),
    "Host with text after the bracket": (400, get(host=b"Host: [::1]x\r\n")),
    "Host with a zone": (400, get(host=b"Host: [fe80::1%25eth0]\r\n")),
    "Host that is a folded line": (400, get(host=b"Host:\r\n here\r\n")),
    "Host in another case twice": (400, get(host=HOST + b"hOST: there\r\n")),
    "Host with a blank before the colon": (400, get(host=b"Host : here\r\n")),
    # Lines, in odder forms.
    "bare LF inside a value": (400, get(b"A: b\nTransfer-Encoding: chunked")),
    "vertical tab in a value": (400, get(b"A: b\x0bc")),
    "form feed in a value": (400, get(b"A: b\x0cc")),
    "escape in a value": (400, get(b"A: \x1b[31m")),
    "tab before the colon": (400, get(b"A\t: b")),
    "NUL in a name": (400, get(b"A\x00: b")),
    "name with a slash": (400, get(b"A/B: c")),
    "name with a blank": (400, get(b"A B: c")),
    "name in quotes": (400, get(b'"A": b')),
    "name with an at sign": (400, get(b"A@B: c")),
    "folded line of the key": (400, get(b"Authorization: Bearer", b" a")),
    "folded last line": (400, get(b"A: b", b" ")),
    "two cookies": (400, get(b"Cookie: a=b", b"Cookie: c=d")),
    # Framing, in odder forms.
    "length with a dot": (400, post(b"Content-Length: 1.0", body=b"a")),
    "length with an exponent": (400, post(b"Content-Length: 1e1", body=b"a" * 10)),
    "length with a comma at the end": (400, post(b"Content-Length: 1,", body=b"a")),
    "length in quotes": (400, post(b'Content-Length: "1"', body=b"a")),
    "length with a semicolon": (400, post(b"Content-Length: 1;a=b", body=b"a")),
    "list of other lengths": (400, post(b"Content-Length: 1, 2", body=b"ab")),
    "length with a form feed": (400, post(b"Content-Length: \x0c1", body=b"a")),
    "length with a no-break space": (400, post(b"Content-Length: 1\xa0", body=b"a")),
    "length in full-width digits": (400, post("Content-Length: １".encode(), body=b"a")),
    "length with a NUL": (400, post(b"Content-Length: 1\x00", body=b"a")),
    "length in another case twice": (400, post(b"content-length: 1", b"CONTENT-LENGTH: 2", body=b"ab")),
    "length with a blank before the colon": (400, post(b"Content-Length : 1", body=b"a")),
    "length that is folded": (400, post(b"Content-Length:", b" 1", body=b"a")),
    "length of zero beside a coding": (400, post(b"Content-Length: 0", CHUNKED, body=b"0\r\n\r\n")),
    "length beside a coding that is unknown": (400, post(b"Content-Length: 1", b"Transfer-Encoding: gzip", body=b"a")),
    "coding with a blank before the colon": (400, post(b"Transfer-Encoding : chunked", body=b"0\r\n\r\n")),
    "coding with a tab before the colon": (400, post(b"Transfer-Encoding\t: chunked", body=b"0\r\n\r\n")),
    "coding that is folded": (400, post(b"Transfer-Encoding:", b" chunked", body=b"0\r\n\r\n")),
    "coding with a vertical tab": (400, post(b"Transfer-Encoding:\x0bchunked", body=b"0\r\n\r\n")),
    "coding with a NUL": (400, post(b"Transfer-Encoding: chunked\x00", body=b"0\r\n\r\n")),
    "coding in single quotes": (501, post(b"Transfer-Encoding: 'chunked'", body=b"0\r\n\r\n")),
    "coding in two fields of another kind": (400, post(CHUNKED, b"Transfer-Encoding: identity", body=b"0\r\n\r\n")),
    "coding with a comma first": (400, post(b"Transfer-Encoding: , chunked", body=b"0\r\n\r\n")),
    "coding with a comma last": (400, post(b"Transfer-Encoding: chunked,", body=b"0\r\n\r\n")),
    "chunked and then another coding": (501, post(b"Transfer-Encoding: chunked, gzip", body=b"0\r\n\r\n")),
    "coding of a GET in HTTP/1.0": (400, get(CHUNKED, first=b"GET / HTTP/1.0") + b"0\r\n\r\n"),
    "negative chunk size": (400, post(CHUNKED, body=b"-1\r\na\r\n0\r\n\r\n")),
    "chunk size with an underscore": (400, post(CHUNKED, body=b"1_0\r\n" + b"a" * 16 + b"\r\n0\r\n\r\n")),
    "chunk size in other digits": (400, post(CHUNKED, body="١".encode() + b"\r\na\r\n0\r\n\r\n")),
    "chunk size that is no number": (400, post(CHUNKED, body=b"xyz\r\na\r\n0\r\n\r\n")),
    "chunk size with h": (400, post(CHUNKED, body=b"1h\r\na\r\n0\r\n\r\n")),
    "chunk size with a tab after it": (400, post(CHUNKED, body=b"1\t\r\na\r\n0\r\n\r\n")),
    "chunk size with a NUL": (400, post(CHUNKED, body=b"1\x00\r\na\r\n0\r\n\r\n")),
    "chunk size after CR alone": (400, post(CHUNKED, body=b"1\ra\r\n0\r\n\r\n")),
    "chunk extension with a bare LF": (400, post(CHUNKED, body=b"1;a\nb\r\na\r\n0\r\n\r\n")),
    "chunk extension with a bare CR": (400, post(CHUNKED, body=b"1;a\rb\r\na\r\n0\r\n\r\n")),
    "chunk that is shorter": (400, post(CHUNKED, body=b"3\r\na\r\n0\r\n\r\n")),
    "last chunk with a bare LF": (400, post(CHUNKED, body=b"1\r\na\r\n0\n\n")),
    "trailer with a bare LF": (400, post(CHUNKED, body=b"0\r\nA: b\n\r\n")),
    "trailer with a blank before the colon": (400, post(CHUNKED, body=b"0\r\nA : b\r\n\r\n")),
    "trailer with a NUL": (400, post(CHUNKED, body=b"0\r\nA: \x00\r\n\r\n")),
    "trailer that is folded": (400, post(CHUNKED, body=b"0\r\nA: b\r\n c\r\n\r\n")),
    "a request inside a chunk's end": (400, post(CHUNKED, body=b"1\r\naGET / HTTP/1.1\r\nHost: here\r\n\r\n")),
    "expectation beside continue": (417, post(b"Expect: 100-continue, 200-ok", b"Content-Length: 1")),
    "expectation with a parameter": (417, post(b"Expect: 100-continue;a=b", b"Content-Length: 1")),
    # Sizes, in odder forms.
    "name of thousands of letters": (431, get(b"A" * 17000 + b": b")),
    "version of thousands of digits": (400, get(first=b"GET / HTTP/1." + b"1" * 8000)),
    "length of thousands of digits": (413, post(b"Content-Length: " + b"9" * 8000)),
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
    "encoded slash stays in its segment": (get(first=b"GET /a%2f..%2F%41 HTTP/1.1"), b"GET /a%2F..%2FA ? 0"),
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
