"""Sends hand-written HTTP/2 frames to a gRPC server, and prints how each case of RFC 9113 and RFC 7541 ends.

    python3 frame_cases.py <port>

The cases and their sections are those that h2spec names. Every line of the output is the JSON of one case:
`section`, `name`, `expected`, `got`, and `passed`.
"""

import json
import socket
import struct
import sys

import hpack

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITIZED = 0x20
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CODES = (
    "NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED FRAME_SIZE_ERROR "
    "REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM INADEQUATE_SECURITY HTTP_1_1_REQUIRED"
).split()
PATH = "/inference.GRPCInferenceService/ServerLive"
EMPTY_MESSAGE = b"\0\0\0\0\0"
# A server that neither answers nor closes within this many seconds hangs.
TIMEOUT_SECONDS = 60


def frame(kind, flags, stream, payload=b"", length=None):
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(*pairs):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", key, value) for key, value in pairs))


def request(*changes, without=(), path=PATH, first=()):
    """The headers of a call, with some left out and others at the beginning or the end."""
    fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ]
    kept = [field for field in fields if field[0] not in without]
    return hpack.Encoder().encode([*first, *kept, *changes], huffman=False)


def headers(stream, block=None, flags=END_HEADERS, payload=None):
    return frame(HEADERS, flags, stream, (request() if block is None else block) if payload is None else payload)


def message(stream, flags=END_STREAM):
    return frame(DATA, flags, stream, EMPTY_MESSAGE)


def call(stream):
    return headers(stream) + message(stream)


class Connection:
    def __init__(self, port, greeting=PREFACE + settings()):
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.frames = []
        self.pings = 0
        self.send(greeting)

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            # The server has closed. What it sent before tells why.
            pass

    def read(self):
        """The next frame; None after the end of the connection."""
        while True:
            if len(self.buffer) >= 9:
                end = 9 + int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) >= end:
                    kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
                    read = (kind, flags, stream & 0x7FFFFFFF, self.buffer[9:end])
                    self.buffer = self.buffer[end:]
                    self.frames.append(read)
                    return read
            try:
                data = self.socket.recv(65536)
            except ConnectionError:
                return None
            if data == b"":
                return None
            self.buffer += data

    def settle(self):
        """Reads until the server has handled all that was sent. False after the end of the connection."""
        # A server may send the answer to a PING before frames that are waiting, so a second PING follows.
        for _ in range(2):
            self.pings += 1
            payload = struct.pack(">Q", self.pings)
            self.send(frame(PING, 0, 0, payload))
            while True:
                read = self.read()
                if read is None or read[0] == GOAWAY:
                    return False
                if read[0] == PING and read[1] & ACK and read[3] == payload:
                    break
        return True

    def until(self, wanted):
        """Reads until a frame fits. None after the end of the connection."""
        for read in self.frames:
            if wanted(read):
                return read
        while True:
            read = self.read()
            if read is None or wanted(read):
                return read

    def answered(self, stream):
        """Waits for the end of a call. Whether it has ended with an answer."""
        read = self.until(lambda f: f[2] == stream and f[0] in (HEADERS, DATA) and f[1] & END_STREAM or f[0] in (GOAWAY, RST_STREAM))
        return read is not None and read[0] in (HEADERS, DATA)

    def end(self):
        """How the case ended: the error of the connection, that of a stream, or none."""
        alive = self.settle()
        for kind, _, _, payload in self.frames:
            if kind == GOAWAY:
                return "connection " + code(payload[4:8])
        if not alive:
            return "closed"
        for kind, _, _, payload in self.frames:
            if kind == RST_STREAM:
                return "stream " + code(payload)
        # Other servers answer a malformed request with a status.
        return "none"


def code(payload):
    number = int.from_bytes(payload, "big")
    return CODES[number] if number < len(CODES) else str(number)


CASES = []


def case(section, name, *expected):
    """Registers a case. It sends, and may return how it ended."""

    def register(run):
        CASES.append((section, name, list(expected), run))
        return run

    return register


def connection(*codes):
    """The error of a connection; closing without a GOAWAY is permitted too."""
    return ["connection " + one for one in codes] + ["closed"]


def stream_error(*codes):
    """The error of a stream, which a server may treat as one of the connection."""
    return ["stream " + one for one in codes] + connection(*codes)


def sends(section, name, expected, *frames):
    case(section, name, *expected)(lambda c: c.send(b"".join(frames)))


def works(section, name, *frames, stream=1):
    """A case after which the call of the stream is answered."""

    @case(section, name, "answered")
    def run(c):
        c.send(b"".join(frames))
        return "answered" if c.answered(stream) else c.end()


NONE = ["none"]
P = connection("PROTOCOL_ERROR")

# 3.4: the connection preface


@case("3.4", "answers the preface with SETTINGS", "SETTINGS")
def _(c):
    read = c.read()
    return "SETTINGS" if read is not None and read[0] == SETTINGS and not read[1] & ACK else "another frame"


@case("3.4", "closes a connection with another preface", *P)
def _(c):
    other = Connection(c.port, b"INVALID CONNECTION PREFACE\r\n\r\n")
    c.frames = other.frames
    return other.end()


# 4: frames
works("4.1", "ignores a frame of an unknown type", frame(0x16, 0, 0, b"12345678"), call(1))
works("4.1", "ignores undefined flags", frame(PING, 0x16, 0, b"12345678"), call(1))
works("4.1", "ignores the reserved bit of a stream", frame(PING, 0, 0x80000000, b"12345678"), call(1))


@case("4.2", "accepts a DATA frame of 16384 bytes", "handled")
def _(c):
    c.send(headers(1) + frame(DATA, END_STREAM, 1, b"\0\0\0\x3f\xfb" + bytes(16379)))
    return "handled" if c.answered(1) else c.end()


sends("4.2", "refuses a DATA frame above the limit", stream_error("FRAME_SIZE_ERROR"), headers(1), frame(DATA, END_STREAM, 1, bytes(1024 * 1024 + 1)))
sends("4.2", "refuses a HEADERS frame above the limit", connection("FRAME_SIZE_ERROR"), frame(HEADERS, END_HEADERS, 1, bytes(1024 * 1024 + 1)))
sends("4.3", "refuses an invalid header block", connection("COMPRESSION_ERROR"), headers(1, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
sends("4.3", "refuses PRIORITY within a header block", P, headers(1, flags=0), frame(PRIORITY, 0, 1, struct.pack(">IB", 0, 255)))
sends("4.3", "refuses HEADERS of another stream within a header block", P, headers(1, flags=0), headers(3))

# 5.1: states of streams
sends("5.1", "idle: refuses DATA", P, message(1))
sends("5.1", "idle: refuses RST_STREAM", P, frame(RST_STREAM, 0, 1, struct.pack(">I", 8)))
sends("5.1", "idle: refuses WINDOW_UPDATE", P, frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 100)))
sends("5.1", "idle: refuses CONTINUATION", P, frame(CONTINUATION, END_HEADERS, 1, request()))
CLOSED = stream_error("STREAM_CLOSED")
ENDED = headers(1, flags=END_HEADERS | END_STREAM)
sends("5.1", "half-closed: refuses DATA", CLOSED, ENDED, message(1))
sends("5.1", "half-closed: refuses HEADERS", CLOSED, ENDED, headers(1))
sends("5.1", "half-closed: refuses CONTINUATION", stream_error("STREAM_CLOSED", "PROTOCOL_ERROR"), ENDED, frame(CONTINUATION, END_HEADERS, 1, request()))
RESET = headers(1) + frame(RST_STREAM, 0, 1, struct.pack(">I", 8))
sends("5.1", "closed by RST_STREAM: refuses DATA", CLOSED, RESET, message(1))
sends("5.1", "closed by RST_STREAM: refuses HEADERS", CLOSED, RESET, headers(1))
sends("5.1", "closed by RST_STREAM: refuses CONTINUATION", stream_error("STREAM_CLOSED", "PROTOCOL_ERROR"), RESET, frame(CONTINUATION, END_HEADERS, 1, request()))


def after_answer(name, expected, sent):
    @case("5.1", name, *expected)
    def run(c):
        c.send(call(1))
        c.answered(1)
        c.send(sent)


after_answer("closed: refuses DATA", CLOSED, message(1))
after_answer("closed: refuses HEADERS", connection("STREAM_CLOSED"), headers(1))
after_answer("closed: refuses CONTINUATION", connection("STREAM_CLOSED", "PROTOCOL_ERROR"), frame(CONTINUATION, END_HEADERS, 1, request()))
sends("5.1.1", "refuses an even stream", P, headers(2, flags=END_HEADERS | END_STREAM))
sends("5.1.1", "refuses a stream below the last one", P, call(5), headers(3))


@case("5.1.2", "refuses more streams than its limit", *stream_error("REFUSED_STREAM", "PROTOCOL_ERROR"))
def _(c):
    c.until(lambda f: f[0] == SETTINGS)
    most = dict(struct.iter_unpack(">HI", c.frames[0][3])).get(3, 100)
    c.send(b"".join(headers(1 + 2 * i) for i in range(most + 1)))


sends("5.4.1", "closes the connection after an error of it", connection("FRAME_SIZE_ERROR"), frame(PING, 0, 0, b"\0\0\0\0"))
works("5.5", "ignores an extension frame", frame(0xFF, 0, 0, b"12345678"), call(1))
sends("5.5", "refuses an extension frame within a header block", P, headers(1, flags=0), frame(0xFF, 0, 0, b"12345678"))

# 6: the frames
sends("6.1", "refuses DATA on stream 0", P, message(0))
sends("6.1", "refuses DATA on a stream that is not open", CLOSED, ENDED, message(1))
sends("6.1", "refuses DATA with more padding than bytes", P, headers(1), frame(DATA, END_STREAM | PADDED, 1, b"\x06Test"))
works("6.1", "accepts padded DATA", headers(1), frame(DATA, END_STREAM | PADDED, 1, b"\x03" + EMPTY_MESSAGE + bytes(3)))
sends("6.2", "refuses another frame before END_HEADERS", P, headers(1, flags=0), frame(PRIORITY, 0, 1, struct.pack(">IB", 0, 255)))
sends("6.2", "refuses HEADERS on stream 0", P, headers(0))
sends("6.2", "refuses HEADERS with more padding than bytes", P, headers(1, flags=END_HEADERS | PADDED, payload=b"\xff" + request()))
works("6.2", "accepts padded HEADERS with a priority", headers(1, flags=END_HEADERS | PADDED | PRIORITIZED, payload=b"\x02" + struct.pack(">IB", 0, 15) + request() + bytes(2)), message(1))
sends("6.3", "refuses PRIORITY on stream 0", P, frame(PRIORITY, 0, 0, struct.pack(">IB", 0, 255)))
sends("6.3", "refuses PRIORITY that has not 5 bytes", stream_error("FRAME_SIZE_ERROR"), headers(1), frame(PRIORITY, 0, 1, b"\x80\0\0\x01"))
sends("6.4", "refuses RST_STREAM on stream 0", P, frame(RST_STREAM, 0, 0, struct.pack(">I", 8)))
sends("6.4", "refuses RST_STREAM on an idle stream", P, frame(RST_STREAM, 0, 1, struct.pack(">I", 8)))
sends("6.4", "refuses RST_STREAM that has not 4 bytes", connection("FRAME_SIZE_ERROR"), headers(1), frame(RST_STREAM, 0, 1, b"\0\0\0"))
SIZE = connection("FRAME_SIZE_ERROR")
sends("6.5", "refuses an acknowledgement with settings", SIZE, frame(SETTINGS, ACK, 0, b"\0"))
sends("6.5", "refuses SETTINGS on a stream", P, frame(SETTINGS, 0, 1, struct.pack(">HI", 3, 100)))
sends("6.5", "refuses SETTINGS that has not a multiple of 6 bytes", SIZE, frame(SETTINGS, 0, 0, b"\0\x03\0"))
sends("6.5.2", "refuses ENABLE_PUSH other than 0 and 1", P, settings((2, 2)))
sends("6.5.2", "refuses INITIAL_WINDOW_SIZE above 2^31-1", connection("FLOW_CONTROL_ERROR"), settings((4, 2**31)))
sends("6.5.2", "refuses MAX_FRAME_SIZE below 16384", P, settings((5, 16383)))
sends("6.5.2", "refuses MAX_FRAME_SIZE above 2^24-1", P, settings((5, 2**24)))
works("6.5.2", "ignores an unknown setting", settings((0xFF, 1)), call(1))
works("6.5.3", "applies settings in their order", settings((4, 0), (4, 65535)), call(1))


@case("6.5.3", "acknowledges SETTINGS", "acknowledged")
def _(c):
    read = c.until(lambda f: f[0] == SETTINGS and f[1] & ACK)
    return "closed" if read is None else "acknowledged"


@case("6.7", "answers PING with its bytes", "answered")
def _(c):
    c.send(frame(PING, 0, 0, b"pingpong"))
    read = c.until(lambda f: f[0] == PING and f[1] & ACK)
    return "answered" if read is not None and read[3] == b"pingpong" else "another answer"


sends("6.7", "does not answer an acknowledgement of PING", NONE, frame(PING, ACK, 0, b"unwanted"))
sends("6.7", "refuses PING on a stream", P, frame(PING, 0, 1, b"12345678"))
sends("6.7", "refuses PING that has not 8 bytes", SIZE, frame(PING, 0, 0, b"123456"))
sends("6.8", "refuses GOAWAY on a stream", P, frame(GOAWAY, 0, 1, struct.pack(">II", 0, 0)))
sends("6.9", "refuses an increment of 0 for the connection", P, frame(WINDOW_UPDATE, 0, 0, bytes(4)))
sends("6.9", "refuses an increment of 0 for a stream", stream_error("PROTOCOL_ERROR"), headers(1), frame(WINDOW_UPDATE, 0, 1, bytes(4)))
sends("6.9", "refuses WINDOW_UPDATE that has not 4 bytes", SIZE, frame(WINDOW_UPDATE, 0, 0, bytes(3)))


@case("6.9.1", "sends no more bytes than the window of a stream has", "1 byte")
def _(c):
    c.send(settings((4, 1)) + call(1))
    c.until(lambda f: f[0] in (DATA, GOAWAY, RST_STREAM) and f[2] == 1)
    c.settle()
    sent = sum(len(payload) for kind, _, stream, payload in c.frames if kind == DATA and stream == 1)
    return f"{sent} byte"


INCREMENT = struct.pack(">I", 2**31 - 1)
sends("6.9.1", "refuses a window of the connection above 2^31-1", connection("FLOW_CONTROL_ERROR"), frame(WINDOW_UPDATE, 0, 0, INCREMENT), frame(WINDOW_UPDATE, 0, 0, INCREMENT))
sends("6.9.1", "refuses a window of a stream above 2^31-1", stream_error("FLOW_CONTROL_ERROR"), headers(1), frame(WINDOW_UPDATE, 0, 1, INCREMENT), frame(WINDOW_UPDATE, 0, 1, INCREMENT))


@case("6.9.2", "continues when a changed setting opens the window", "answered")
def _(c):
    c.send(settings((4, 0)) + call(1))
    c.until(lambda f: f[0] in (HEADERS, GOAWAY, RST_STREAM) and f[2] == 1)
    c.settle()
    before = sum(len(payload) for kind, _, stream, payload in c.frames if kind == DATA and stream == 1)
    c.send(settings((4, 1)))
    if before > 0 or c.until(lambda f: f[0] == DATA and f[3] != b"") is None:
        return "sent before the window opened"
    c.send(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 65535)))
    return "answered" if c.answered(1) else c.end()


@case("6.9.2", "continues after a negative window", "answered")
def _(c):
    c.send(settings((4, 3)) + call(1))
    c.until(lambda f: f[0] == DATA and f[2] == 1)
    c.send(settings((4, 1)) + frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 2)))
    c.settle()
    sent = sum(len(payload) for kind, _, stream, payload in c.frames if kind == DATA and stream == 1)
    if sent != 3:
        return f"{sent} bytes"
    c.send(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 100)))
    return "answered" if c.answered(1) else c.end()


sends("6.9.2", "refuses a setting that makes a window too large", connection("FLOW_CONTROL_ERROR"), headers(1), frame(WINDOW_UPDATE, 0, 1, INCREMENT[:3] + b"\0"), settings((4, 2**31 - 1)))
BLOCK = request()
works("6.10", "accepts several CONTINUATION frames", headers(1, BLOCK[:9], flags=0), frame(CONTINUATION, 0, 1, BLOCK[9:20]), frame(CONTINUATION, END_HEADERS, 1, BLOCK[20:]), message(1))
sends("6.10", "refuses another frame behind CONTINUATION", P, headers(1, BLOCK[:9], flags=0), frame(CONTINUATION, 0, 1, BLOCK[9:]), message(1))
sends("6.10", "refuses CONTINUATION on stream 0", P, headers(1, BLOCK[:9], flags=0), frame(CONTINUATION, END_HEADERS, 0, BLOCK[9:]))
sends("6.10", "refuses CONTINUATION after END_HEADERS", P, headers(1), frame(CONTINUATION, END_HEADERS, 1, BLOCK))
sends("6.10", "refuses CONTINUATION after the last CONTINUATION", P, headers(1, BLOCK[:9], flags=0), frame(CONTINUATION, END_HEADERS, 1, BLOCK[9:]), frame(CONTINUATION, END_HEADERS, 1, BLOCK))
sends("6.10", "refuses CONTINUATION behind DATA", P, headers(1), message(1, 0), frame(CONTINUATION, END_HEADERS, 1, BLOCK))

# 7: error codes


@case("7", "accepts GOAWAY with an unknown code", "none", "connection NO_ERROR", "closed")
def _(c):
    c.send(frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0xFF)))


sends("7", "accepts RST_STREAM with an unknown code", NONE, headers(1), frame(RST_STREAM, 0, 1, struct.pack(">I", 0xFF)))

# 8: requests. A malformed request is an error of its stream.
M = stream_error("PROTOCOL_ERROR")
sends("8.1", "refuses a second HEADERS without END_STREAM", M, headers(1), headers(1, hpack.Encoder().encode([("x", "y")])))


def malformed(section, name, block, behind=b""):
    sends(section, name, M, headers(1, block), behind or message(1))


malformed("8.2.1", "refuses a header name in upper case", request(("X-TEST", "ok")))
malformed("8.2.1", "refuses a header value with a line break", request(("x-test", "a\nb")))
malformed("8.3", "refuses an unknown pseudo-header", request(first=[(":test", "ok")]))
malformed("8.3", "refuses the pseudo-header of a response", request(first=[(":status", "200")]))
malformed("8.3", "refuses a pseudo-header behind others", request((":method", "POST"), without=(":method",)))
sends("8.3", "refuses a pseudo-header in trailers", M, headers(1), headers(1, hpack.Encoder().encode([(":method", "POST")]), flags=END_HEADERS | END_STREAM))
malformed("8.2.2", "refuses the header connection", request(("connection", "keep-alive")))
malformed("8.2.2", "refuses te other than trailers", request(("te", "trailers, deflate"), without=("te",)))
malformed("8.3.1", "refuses an empty :path", request(path=""))
malformed("8.3.1", "refuses a request without :method", request(without=(":method",)))
malformed("8.3.1", "refuses a request without :scheme", request(without=(":scheme",)))
malformed("8.3.1", "refuses a request without :path", request(without=(":path",)))
malformed("8.3.1", "refuses a second :method", request(first=[(":method", "POST")]))
malformed("8.3.1", "refuses a second :scheme", request(first=[(":scheme", "http")]))
malformed("8.3.1", "refuses a second :path", request(first=[(":path", "/")]))
malformed("8.1.1", "refuses a content-length that is not that of DATA", request(("content-length", "1")))
malformed("8.1.1", "refuses a content-length that is not the sum of DATA", request(("content-length", "1")), frame(DATA, 0, 1, EMPTY_MESSAGE[:3]) + frame(DATA, END_STREAM, 1, EMPTY_MESSAGE[3:]))
sends("8.4", "refuses PUSH_PROMISE of a client", P, headers(1), frame(PUSH_PROMISE, END_HEADERS, 1, struct.pack(">I", 3) + BLOCK))

# RFC 7541: header compression
C = connection("COMPRESSION_ERROR")
sends("HPACK 2.3.3", "refuses an index beyond the tables", C, headers(1, request() + b"\xc6"))
sends("HPACK 2.3.3", "refuses a name with an index beyond the tables", C, headers(1, request() + b"\x7f\x07\x01a"))
sends("HPACK 4.2", "refuses a change of the table at the end of a block", C, headers(1, request() + b"\x20"))
# The header "x-test: test" in Huffman code is 49 50 9f, of which the last 4 bits are padding.
TEXT = b"\x00\x06x-test"
sends("HPACK 5.2", "refuses Huffman padding of more than 7 bits", C, headers(1, request() + TEXT + b"\x84\x49\x50\x9f\xff"))
sends("HPACK 5.2", "refuses Huffman padding of zeros", C, headers(1, request() + TEXT + b"\x83\x49\x50\x90"))
sends("HPACK 5.2", "refuses Huffman text with an end of string", C, headers(1, request() + TEXT + b"\x87\x49\x50\x9f\xff\xff\xff\xff"))
sends("HPACK 6.1", "refuses the index 0", C, headers(1, request() + b"\x80"))
sends("HPACK 6.3", "refuses a table above the setting", C, headers(1, b"\x3f\xe1\xff\x7f" + request()))


def main(port):
    for section, name, expected, run in CASES:
        c = Connection(port)
        c.port = port
        got = run(c)
        if got is None:
            got = c.end()
        c.socket.close()
        print(json.dumps({"section": section, "name": name, "expected": expected, "got": got, "passed": got in expected}), flush=True)


main(int(sys.argv[1]))
