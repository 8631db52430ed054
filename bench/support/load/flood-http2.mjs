/*
 * gRPC calls as bare HTTP/2 frames. Response headers are not decoded: an answer has a message, and a refusal of a unary
 * call is one block of headers that ends the stream. So the load costs a small part of what the server needs.
 */
import { connect } from "node:net";

const FRAME = { DATA: 0, HEADERS: 1, RST_STREAM: 3, SETTINGS: 4, PING: 6, GOAWAY: 7, WINDOW_UPDATE: 8 };
const END_STREAM = 1;
const END_HEADERS = 4;
const ACK = 1;
const FRAME_HEAD = 9;
const LARGEST_WINDOW = 2 ** 31 - 1;
/** Bytes of data after which the connection's receive window is opened again. */
const UPDATE_AFTER = 2 ** 28;

/** One connection. The owner's `received(id, bytes)` gets the data of a stream, `ended(id, hadData)` its end. */
export class FloodSession {
  #socket;
  #owner;
  #head;
  #rest = Buffer.alloc(0);
  #out = [];
  #nextId = 1;
  #hadData = new Set();
  #unacknowledged = 0;
  #room = 65_535;
  #held = [];

  constructor(url, method, owner) {
    const [host, port] = url.split(":");
    this.#owner = owner;
    this.#head = requestHead(url, method);
    this.#socket = connect({ host, port: Number(port), noDelay: true });
    this.#socket.on("data", (bytes) => this.#read(bytes));
    this.#socket.on("error", (error) => owner.failed(error));
    const settings = Buffer.alloc(6);
    settings.writeUInt16BE(4, 0);
    settings.writeUInt32BE(LARGEST_WINDOW, 2);
    this.#out.push(Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(FRAME.SETTINGS, 0, 0, settings));
    this.#out.push(windowUpdate(LARGEST_WINDOW - 65_535));
    this.flush();
  }

  /** Opens a stream and returns its id. */
  open() {
    const id = this.#nextId;
    this.#nextId += 2;
    this.#out.push(frame(FRAME.HEADERS, END_HEADERS, id, this.#head));
    return id;
  }

  /** Sends data of a stream, which may be its last. */
  send(id, bytes, isLast) {
    const data = frame(FRAME.DATA, isLast ? END_STREAM : 0, id, bytes);
    if (this.#room < bytes.length || this.#held.length > 0) this.#held.push(data);
    else {
      this.#room -= bytes.length;
      this.#out.push(data);
    }
  }

  /** Writes what was sent since the last call. */
  flush() {
    if (this.#out.length === 0) return;
    this.#socket.write(this.#out.length === 1 ? this.#out[0] : Buffer.concat(this.#out));
    this.#out = [];
  }

  close() {
    this.#socket.destroy();
  }

  #read(bytes) {
    let rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let at = 0;
    while (rest.length - at >= FRAME_HEAD) {
      const length = rest.readUIntBE(at, 3);
      const end = at + FRAME_HEAD + length;
      if (end > rest.length) break;
      this.#frame(rest[at + 3], rest[at + 4], rest.readUInt32BE(at + 5), rest.subarray(at + FRAME_HEAD, end));
      at = end;
    }
    rest = rest.subarray(at);
    this.#rest = rest.length === 0 ? rest : Buffer.from(rest);
    this.flush();
  }

  #frame(type, flags, id, payload) {
    if (type === FRAME.DATA) {
      this.#hadData.add(id);
      this.#unacknowledged += payload.length;
      if (this.#unacknowledged > UPDATE_AFTER) {
        this.#out.push(windowUpdate(this.#unacknowledged));
        this.#unacknowledged = 0;
      }
      this.#owner.received(id, payload);
    } else if (type === FRAME.RST_STREAM) {
      if (this.#hadData.delete(id)) return;
      this.#owner.failed(new Error(`the server reset a stream: ${payload.readUInt32BE(0)}`));
      return;
    } else if (type === FRAME.SETTINGS && (flags & ACK) === 0) {
      this.#out.push(frame(FRAME.SETTINGS, ACK, 0, Buffer.alloc(0)));
    } else if (type === FRAME.PING && (flags & ACK) === 0) this.#out.push(frame(FRAME.PING, ACK, 0, payload));
    else if (type === FRAME.WINDOW_UPDATE && id === 0) this.#opened(payload.readUInt32BE(0));
    else if (type === FRAME.GOAWAY) this.#owner.failed(new Error("the server sent GOAWAY"));
    const ends = (type === FRAME.DATA || type === FRAME.HEADERS) && (flags & END_STREAM) !== 0;
    if (ends) this.#owner.ended(id, this.#hadData.delete(id));
  }

  #opened(bytes) {
    this.#room += bytes;
    while (this.#held.length > 0 && this.#held[0].length - FRAME_HEAD <= this.#room) {
      const data = this.#held.shift();
      this.#room -= data.length - FRAME_HEAD;
      this.#out.push(data);
    }
  }
}

function frame(type, flags, id, payload) {
  const bytes = Buffer.allocUnsafe(FRAME_HEAD + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(id, 5);
  payload.copy(bytes, FRAME_HEAD);
  return bytes;
}

function windowUpdate(bytes) {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame(FRAME.WINDOW_UPDATE, 0, 0, payload);
}

/** Header fields as HPACK literals: the server's table stays empty. */
function requestHead(authority, method) {
  const text = (value) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  return Buffer.concat([
    ...[Buffer.from([0x83, 0x86, 0x04]), text(`/inference.GRPCInferenceService/${method}`)],
    ...[Buffer.from([0x01]), text(authority), Buffer.from([0x0f, 0x10]), text("application/grpc")],
    ...[Buffer.from([0x00]), text("te"), text("trailers")],
  ]);
}
