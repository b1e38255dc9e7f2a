"""What the inputs of each target are put together from, so that chance gets past the first byte."""

from collections.abc import Mapping

_JSON = [
    b"{", b"}", b"[", b"]", b":", b",", b'"', b'"a"', b'"a":', b"0", b"-1", b"1.5e3", b"1e999", b"true", b"null", b"NaN",
    b"9223372036854775807", b"9223372036854775808", b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\xc3\xa9"', b"\xff", b"\xef\xbb\xbf",
    b" ", b"\n", b'{"a":1,"a":2}', b"[[[[[[[[[[", b"]]]]]]]]]]", b'"\\u0000"',
]  # fmt: skip

PIECES: Mapping[str, list[bytes]] = {
    "request_head": [
        b"GET ", b"POST ", b"/", b"/a?b=c", b" HTTP/1.1", b" HTTP/1.0", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"Host: h",
        b"Host: h\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"A: b\r\n",
        b" ", b"\t", b":", b"%2f", b"%41", b"..", b"\x00", b"\xff", b"abc", b"Expect: 100-continue\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\n",
    ],
    "chunked_body": [
        b"0\r\n\r\n", b"0", b"1", b"a", b"3", b"\r\n", b"\r", b"\n", b"abc", b"3\r\nabc\r\n", b"A\r\n0123456789\r\n", b";a=b",
        b"ffffffff", b"fffffffff", b" ", b"A: b\r\n", b"x", b"\x00", b"\xff",
    ],
    "upstream_reply": [
        b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200\r\n", b"HTTP/1.1 204\r\n", b"HTTP/1.1 100\r\n\r\n", b"HTTP/1.1 302 x\r\n",
        b"Content-Length: 3\r\n", b"Content-Length: 99999\r\n", b"Transfer-Encoding: chunked\r\n", b"\r\n", b"abc",
        b"3\r\nabc\r\n", b"0\r\n\r\n", b"Content-Encoding: gzip\r\n", b"Connection: close\r\n", b"A: b\r\n", b"\n", b"\x00",
        b"\x1f\x8b\x08\x00",
    ],
    "json_reader": _JSON,
    "chat_walker": [
        *_JSON,
        b'{"model":"m","messages":[', b"]}", b'{"role":"user","content":"', b'"}', b'{"role":"user","content":[', b"]}",
        b'{"type":"text","text":"hello"}', b'{"type":"image_url","image_url":{"url":"data:,x"}}', b'"tool_calls":[',
        b'{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}', b'{"role":"tool","tool_call_id":"c",',
        b'"content":"inside"}', b',"user":"u"', b',"tools":[{"type":"function","function":{"name":"t"}}]', b',"n":2',
        b'{"model":"m","messages":[{"role":"user","content":"hi"}]', b'{"unknown":{"deep":["text"]}}',
    ],
    "rule_loader": [
        *_JSON,
        b'{"version":1,"tables":{},"rules":[', b"]}", b'{"id":"a-b","name":"N","category":"injection",',
        b'"severity":"high","confidence":0.5,"description":"d.","direction":["inbound"],', b'"literals":["needle"],',
        b'"pattern":"needle[0-9]{1,3}",', b'"pattern":"(a|aa){1,50}$",', b'"pattern":"(",', b'"standards":["CWE-798"],',
        b'"match":["needle"],"pass":["hay"]}', b'"validator":"luhn",', b'"view":"text",',
    ],
    "mcp_reader": [
        *_JSON,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', b'{"jsonrpc":"2.0",', b'"id":1,', b'"id":null,', b'"id":"x",',
        b'"method":"initialize"', b'"params":{}', b'"params":[]', b'"result":{}', b'"error":{}', b",",
    ],
}  # fmt: skip
