/* Callers in a closed loop: each sends its next request as soon as it has an answer or a refusal to the last one. */
import { connect } from "node:net";
import { framed, inferMessage } from "../support/load.mjs";
import { percentile, short } from "../support/pairs.mjs";
import { answerCalls } from "../support/program.mjs";

/*
 * gRPC calls as bare HTTP/2 frames. Response headers are not decoded: an answer has a message, and a refusal of a unary
 * call is one block of headers that ends the stream. So the load costs a small part of what the server needs.
 */

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

const CONNECTIONS = 8;
const SHARED_STREAMS = 40;
/** First byte of a ModelStreamInferResponse that has an error. */
const ERROR_TAG = 0x0a;

/** Counts answers and refusals from the end of the warm-up on. */
class Tally {
  good = 0;
  refused = 0;
  failures = 0;
  firstFailure = undefined;
  counts = false;
  latencies = [];
  refusalLatencies = [];

  settle(isGood, since) {
    if (!this.counts) return;
    if (isGood) this.good++;
    else this.refused++;
    (isGood ? this.latencies : this.refusalLatencies).push(performance.now() - since);
  }

  failed(error) {
    this.failures++;
    this.firstFailure ??= String(error);
  }
}

/** One call for each request: unary calls, or streams with one request. */
class Calls {
  #tally;
  #session;
  #message;
  #isStream;
  #open = new Map();

  constructor(url, method, message, callers, tally) {
    this.#tally = tally;
    this.#message = message;
    this.#isStream = method === "ModelStreamInfer";
    this.#session = new FloodSession(url, method, this);
    for (let caller = 0; caller < callers; caller++) this.#call();
    this.#session.flush();
  }

  received(id, bytes) {
    if (this.#isStream && bytes[5] === ERROR_TAG) this.#open.get(id).isRefused = true;
  }

  ended(id, hadData) {
    const { since, isRefused } = this.#open.get(id);
    this.#open.delete(id);
    this.#tally.settle(hadData && !isRefused, since);
    this.#call();
  }

  failed(error) {
    this.#tally.failed(error);
  }

  close() {
    this.#session.close();
  }

  #call() {
    const id = this.#session.open();
    this.#open.set(id, { since: performance.now(), isRefused: false });
    this.#session.send(id, this.#message, true);
  }
}

/** Streams that stay open, each with several unanswered requests. */
class Streams {
  #tally;
  #session;
  #message;
  #open = new Map();

  constructor(url, message, streams, outstanding, tally) {
    this.#tally = tally;
    this.#message = message;
    this.#session = new FloodSession(url, "ModelStreamInfer", this);
    for (let stream = 0; stream < streams; stream++) {
      const id = this.#session.open();
      this.#open.set(id, { since: [], rest: Buffer.alloc(0) });
      for (let request = 0; request < outstanding; request++) this.#request(id);
    }
    this.#session.flush();
  }

  received(id, bytes) {
    const stream = this.#open.get(id);
    let rest = stream.rest.length === 0 ? bytes : Buffer.concat([stream.rest, bytes]);
    while (rest.length >= 5) {
      const end = 5 + rest.readUInt32BE(1);
      if (rest.length < end) break;
      this.#tally.settle(rest[5] !== ERROR_TAG, stream.since.shift());
      this.#request(id);
      rest = rest.subarray(end);
    }
    stream.rest = rest.length === 0 ? rest : Buffer.from(rest);
  }

  ended(id) {
    this.#tally.failed(new Error(`stream ${id} ended`));
  }

  failed(error) {
    this.#tally.failed(error);
  }

  close() {
    this.#session.close();
  }

  #request(id) {
    this.#open.get(id).since.push(performance.now());
    this.#session.send(id, this.#message, false);
  }
}

/** A connection of HTTP/1.1 with one request at a time. */
class HttpCaller {
  #socket;
  #request;
  #since;
  #rest = "";

  constructor(url, path, body, tally) {
    const { host, hostname, port } = new URL(url);
    this.#request = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true });
    this.#socket.on("data", (bytes) => {
      this.#rest += bytes.latin1Slice();
      if (!isWhole(this.#rest)) return;
      tally.settle(this.#rest.startsWith("HTTP/1.1 200"), this.#since);
      this.#rest = "";
      this.#send();
    });
    this.#socket.on("error", (error) => tally.failed(error));
    this.#send();
  }

  close() {
    this.#socket.destroy();
  }

  #send() {
    this.#since = performance.now();
    this.#socket.write(this.#request);
  }
}

function isWhole(text) {
  const head = text.indexOf("\r\n\r\n");
  if (head < 0) return false;
  const length = /content-length: (\d+)/i.exec(text.slice(0, head))?.[1];
  return length === undefined ? text.endsWith("0\r\n\r\n") : text.length >= head + 4 + Number(length);
}

/** Opens the callers of each way. */
const ways = {
  unary: ({ grpc }, callers, message, tally) =>
    perConnection(callers, (count) => new Calls(grpc, "ModelInfer", message, count, tally)),
  calls: ({ grpc }, callers, message, tally) =>
    perConnection(callers, (count) => new Calls(grpc, "ModelStreamInfer", message, count, tally)),
  streams: ({ grpc }, callers, message, tally) =>
    perConnection(callers, (count) => new Streams(grpc, message, count, 1, tally)),
  shared: ({ grpc }, callers, message, tally) =>
    perConnection(
      SHARED_STREAMS,
      (count) => new Streams(grpc, message, count, callers / SHARED_STREAMS, tally),
    ),
  generate: ({ http }, callers, _message, tally) => {
    const body = JSON.stringify({ x: Array(64).fill(0.5) });
    const path = "/v2/models/slow/generate_stream";
    return Array.from({ length: callers }, () => new HttpCaller(http, path, body, tally));
  },
};

const perConnection = (count, open) => Array.from({ length: CONNECTIONS }, () => open(count / CONNECTIONS));

async function run({ way, urls, callers, seconds, warmUpSeconds }) {
  const message = framed(await inferMessage("slow", 256, true));
  const tally = new Tally();
  const open = ways[way](urls, callers, message, tally);
  await new Promise((resolve) => setTimeout(resolve, warmUpSeconds * 1000));
  tally.counts = true;
  const cpu = process.cpuUsage();
  const start = performance.now();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  tally.counts = false;
  const took = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  for (const one of open) one.close();
  const { good, refused, failures, firstFailure, latencies, refusalLatencies } = tally;
  const at = (values, percent) => (values.length > 0 ? short(percentile(values, percent)) : 0);
  return {
    goodput: good / took,
    refusals: refused / took,
    failures,
    firstFailure,
    p50Ms: at(latencies, 50),
    p99Ms: at(latencies, 99),
    refusalP50Ms: at(refusalLatencies, 50),
    refusalP99Ms: at(refusalLatencies, 99),
    clientCpu: short((user + system) / 1e6 / took),
  };
}

answerCalls({ run });
