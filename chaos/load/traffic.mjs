import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { Agent, fetch } from "undici";
import { SETTLES_WITHIN_MS } from "../oracle/journal.mjs";
import { CHANGING } from "../repository/models.mjs";
import {
  countOnStream,
  generateWords,
  infer,
  inferOnStream,
  leaveBeforeAnswer,
  leaveStream,
  leaveWhileReceiving,
  leaveWhileSending,
  sumSequence,
} from "./requests.mjs";
import { SharedMemoryClient } from "./shared-memory.mjs";
import { leaveHostileFormat, sendHostileFormat, sendHostileTemplate, tellInFormat } from "./texts.mjs";

/** Longest pause of a client between two requests. */
const PAUSE_MS = 80;

/** The clients of one server. */
export function clientsOf({ addresses, accessToken }) {
  const options = { timeoutMs: SETTLES_WITHIN_MS, ...(accessToken === undefined ? {} : { accessToken }) };
  const httpAddress = addresses.HTTPService;
  const grpcAddress = addresses.GRPCInferenceService;
  // The connections of the global fetch would stay open after the run.
  const dispatcher = new Agent();
  const http = new HttpClient(httpAddress, {
    ...options,
    fetch: (url, init) => fetch(url, { ...init, dispatcher }),
  });
  const grpc = new GrpcClient(grpcAddress, options);
  const close = async () => {
    http.close();
    grpc.close();
    await dispatcher.destroy();
  };
  return { httpAddress, grpcAddress, http, grpc, close };
}

/** All clients of the run. Each sends one request after the other, with short pauses, until the load stops. */
export class Traffic {
  #journal;
  #random;
  #loops = [];
  #isStopped = false;
  #sharedMemory = [];
  #python;

  constructor({ journal, random, python }) {
    this.#journal = journal;
    this.#random = random;
    this.#python = python;
  }

  /** Starts the clients of `tritonjs serve`. */
  startServed({ http, grpc, httpAddress }) {
    const over = (protocol, model, turn) => this.#loop("serve", protocol, model, turn);
    const batched = ["js_thread", "js_process", "onnx_thread", "onnx_process", "js_limited"];
    if (this.#python) batched.push("python_double");
    for (const model of batched) {
      over("HTTP JSON", model, (one) => infer({ ...one, client: http, binary: false }));
      over("HTTP binary", model, (one) => infer({ ...one, client: http }));
      over("gRPC", model, (one) => infer({ ...one, client: grpc }));
      this.#session("serve", "gRPC stream", model, (one) => inferOnStream({ ...one, client: grpc }));
    }
    const changing = ({ modelVersion }) => Number(modelVersion) + 1;
    over("HTTP binary", CHANGING, (one) => infer({ ...one, client: http, factor: changing }));
    over("gRPC", CHANGING, (one) => infer({ ...one, client: grpc, factor: changing }));
    over("HTTP binary", "chain", (one) => infer({ ...one, client: http, factor: () => 4 }));
    over("gRPC", "chain", (one) => infer({ ...one, client: grpc, factor: () => 4 }));
    over("generate", "words", (one) => generateWords({ ...one, client: http }));
    this.#session("serve", "HTTP sequences", "sum", (one) => sumSequence({ ...one, client: http }));
    this.#session("serve", "gRPC sequences", "sum", (one) => sumSequence({ ...one, client: grpc }));
    if (this.#python) over("gRPC stream", "python_count", (one) => countOnStream({ ...one, client: grpc }));
    for (const [protocol, client] of [
      ["shared memory, HTTP", http],
      ["shared memory, gRPC", grpc],
    ]) {
      const shared = new SharedMemoryClient(client);
      this.#sharedMemory.push(shared);
      over(protocol, "js_thread", ({ model, random }) => shared.infer(model, random));
    }
    over("HTTP, leaving", "js_thread", (one) => leaveBeforeAnswer({ ...one, client: http }));
    over("gRPC, leaving", "js_process", (one) => leaveBeforeAnswer({ ...one, client: grpc }));
    over("HTTP, leaving", "onnx_thread", (one) => leaveWhileSending({ ...one, address: httpAddress }));
    over("HTTP, leaving", "js_process", (one) => leaveWhileReceiving({ ...one, address: httpAddress }));
    over("generate, leaving", "words", ({ model, random }) =>
      leaveStream(http.generateStream(model, { text: "a b c d e f g h" }), random),
    );
    if (!this.#python) return;
    over("gRPC stream, leaving", "python_count", ({ model, random }) => {
      const inputs = { x: { datatype: "INT32", shape: [1], data: Int32Array.of(50) } };
      return leaveStream(grpc.streamInfer([{ modelName: model, inputs }]), random);
    });
  }

  /** Starts the clients of the program with bound models. */
  startBound({ http, grpc, httpAddress }) {
    const over = (protocol, model, turn) => this.#loop("program", protocol, model, turn);
    for (const model of ["inline", "thread", "process", "onnx"]) {
      over("HTTP binary", model, (one) => infer({ ...one, client: http }));
      over("gRPC", model, (one) => infer({ ...one, client: grpc }));
    }
    over("gRPC stream", "count", (one) => countOnStream({ ...one, client: grpc }));
    this.#session("program", "gRPC sequences", "total", (one) => sumSequence({ ...one, client: grpc }));
    over("HTTP, leaving", "inline", (one) => leaveBeforeAnswer({ ...one, client: http }));
    over("HTTP, leaving", "thread", (one) => leaveWhileReceiving({ ...one, address: httpAddress }));
    for (const [protocol, turn] of [
      ["texts in formats", tellInFormat],
      ["hostile formats", sendHostileFormat],
      ["hostile formats, again", sendHostileFormat],
      ["hostile formats, leaving", leaveHostileFormat],
    ])
      over(protocol, "stories", (one) => turn({ ...one, client: http }));
    over("hostile templates", "hostile_template", (one) => sendHostileTemplate({ ...one, client: http }));
    // Models that are loaded and unloaded: the events open and close the times in which these may fail.
    over("HTTP binary", "loaded_js", (one) => infer({ ...one, client: http }));
    over("gRPC", "loaded_onnx", (one) => infer({ ...one, client: grpc }));
  }

  /** Stops sending. Resolves when every request has settled. */
  async stop() {
    this.#isStopped = true;
    await Promise.all(this.#loops);
  }

  /** Gives the shared memory back, and closes what the clients have open. */
  async close() {
    await Promise.all(this.#sharedMemory.map((shared) => shared.close()));
  }

  /** A client that sends several requests in a row, and records them itself. */
  #session(server, protocol, model, turn) {
    const about = { protocol, server, model };
    const random = this.#random.fork(`${server} ${protocol} ${model}`);
    this.#repeat(random, () => turn({ model, random, journal: this.#journal, about }));
  }

  #loop(server, protocol, model, turn) {
    this.#session(server, protocol, model, ({ random, journal, about }) =>
      journal.record(about, () => turn({ model, random })),
    );
  }

  #repeat(random, turn) {
    const loop = async () => {
      while (!this.#isStopped) {
        await turn();
        await new Promise((resolve) => setTimeout(resolve, random.between(0, PAUSE_MS)));
      }
    };
    this.#loops.push(loop());
  }
}
