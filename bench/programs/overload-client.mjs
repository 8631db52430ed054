/*
 * Sends requests at random times and at a given rate over one protocol, whatever the server does. Latency counts from the
 * time at which a request should have been sent.
 */

import { percentile } from "../support/pairs.mjs";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree } = programOptions();
const { InferenceServerClient: HttpClient } = await importOf(tree, "client", "http/index");
const { InferenceServerClient: GrpcClient } = await importOf(tree, "client", "grpc/index");

const STREAMS = 16;
const inputs = { x: { datatype: "FP32", shape: [1, 64], data: new Float32Array(64) } };
const once = { maxAttempts: 1 };

/** Functions that send one request and resolve with true for an answer and false for a refusal. */
const ways = {
  http({ http }) {
    const client = new HttpClient(http, once);
    return { send: () => settled(client.infer("slow", { inputs })), close: () => client.close() };
  },
  grpc({ grpc }) {
    const client = new GrpcClient(grpc, once);
    return { send: () => settled(client.infer("slow", { inputs })), close: () => client.close() };
  },
  streams({ grpc }) {
    const client = new GrpcClient(grpc, once);
    const streams = Array.from({ length: STREAMS }, () => new OpenStream(client));
    let next = 0;
    return {
      send: () => streams[next++ % STREAMS].send(),
      async close() {
        await Promise.all(streams.map((stream) => stream.end()));
        await client.close();
      },
    };
  },
};

async function settled(answer) {
  try {
    await answer;
    return true;
  } catch (error) {
    if (error.code === "UNAVAILABLE") return false;
    throw error;
  }
}

/** A stream that stays open. Requests go out as they come, and each answer finds its request by its id. */
class OpenStream {
  #waiting = new Map();
  #queue = [];
  #wake = () => {};
  #ended = false;
  #next = 0;
  #over;

  constructor(client) {
    this.#over = this.#read(client.streamInfer(this.#requests(), { timeoutMs: 2 ** 31 - 1 }));
  }

  send() {
    const id = `${this.#next++}`;
    this.#queue.push({ modelName: "slow", inputs, id });
    this.#wake();
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  async end() {
    this.#ended = true;
    this.#wake();
    await this.#over;
  }

  async *#requests() {
    while (!this.#ended || this.#queue.length > 0) {
      const request = this.#queue.shift();
      if (request !== undefined) yield request;
      else
        await new Promise((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  async #read(answers) {
    for await (const { id, error } of answers) {
      this.#waiting.get(id)?.(error === undefined);
      this.#waiting.delete(id);
    }
  }
}

async function run({ way, urls, rate, seconds, sloMs }) {
  const { send, close } = ways[way](urls);
  const tally = { sent: 0, good: 0, late: 0, refused: 0, failed: 0 };
  const latencies = [];
  const open = new Set();
  const one = async (at) => {
    tally.sent++;
    try {
      const isAnswered = await send();
      const latency = performance.now() - at;
      if (!isAnswered) tally.refused++;
      else {
        latencies.push(latency);
        tally[latency <= sloMs ? "good" : "late"]++;
      }
    } catch {
      tally.failed++;
    }
  };
  let next = performance.now();
  const end = next + seconds * 1000;
  while (next < end) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    for (const now = performance.now(); next <= now && next < end; ) {
      const sent = one(next);
      open.add(sent);
      sent.then(() => open.delete(sent));
      next -= (Math.log(1 - Math.random()) * 1000) / rate;
    }
  }
  await Promise.all(open);
  await close();
  return {
    ...tally,
    goodput: tally.good / seconds,
    p99Ms: latencies.length > 0 ? percentile(latencies, 99) : 0,
  };
}

answerCalls({ run });
