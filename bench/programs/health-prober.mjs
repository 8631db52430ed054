/* Probes a server's health every 50 ms over HTTP and over gRPC, whether or not earlier probes are answered. */
import { Agent, get } from "node:http";
import { connect } from "node:http2";
import { percentile, short } from "../support/pairs.mjs";
import { answerCalls } from "../support/program.mjs";

const EVERY_MS = 50;

/** Latency counts from the time at which a probe was due. */
class Probes {
  #latencies = [];
  #send;
  #next = performance.now() + EVERY_MS;
  #timer;

  constructor(send) {
    this.#send = send;
    this.#timer = setInterval(() => this.#sendDue(), EVERY_MS / 10);
  }

  #sendDue() {
    for (; this.#next <= performance.now(); this.#next += EVERY_MS) {
      const due = this.#next;
      this.#send(() => this.#latencies.push(performance.now() - due));
    }
  }

  take() {
    return this.#latencies.splice(0);
  }

  stop() {
    clearInterval(this.#timer);
  }
}

let open;

function start({ http, grpc }) {
  const agent = new Agent({ keepAlive: true });
  const session = connect(`http://${grpc}`);
  const headers = {
    ":method": "POST",
    ":path": "/inference.GRPCInferenceService/ServerReady",
    "content-type": "application/grpc",
    te: "trailers",
  };
  open = {
    http: new Probes((answered) => {
      get(`${http}/v2/health/ready`, { agent }, (response) => response.resume().once("end", answered));
    }),
    grpc: new Probes((answered) => {
      session.request(headers).resume().once("end", answered).end(Buffer.alloc(5));
    }),
  };
}

/** Latencies of the probes since the last call, in milliseconds. */
function figures() {
  const of = (probes) => {
    const all = probes.take();
    return { p50Ms: short(percentile(all, 50)), p99Ms: short(percentile(all, 99)), count: all.length };
  };
  return { http: of(open.http), grpc: of(open.grpc) };
}

answerCalls({ start, figures });
