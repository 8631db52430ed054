/* Callers in a closed loop: each sends its next request as soon as it has an answer or a refusal to the last one. */
import { connect } from "node:net";
import { FloodSession } from "../support/load/flood-http2.mjs";
import { framed } from "../support/load/grpc-load.mjs";
import { inferMessage } from "../support/load/grpc-messages.mjs";
import { answerCalls } from "../support/program.mjs";
import { percentile, short } from "../support/statistics.mjs";

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
