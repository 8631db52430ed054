import { setTimeout as sleep } from "node:timers/promises";
import type { Client, ClientDuplexStream } from "@grpc/grpc-js";
import { callOptions, metadataOf, statusOf } from "./client.js";
import { compareMessage, compareStatus } from "./compare-call.js";
import type { GrpcCase, JsonMessage, RecordedEvent, RecordedStatus } from "./grpc-case.js";
import { decodeMessage, encodeMessage, findRpc } from "./protocol.js";

const EVENT_TIMEOUT_MS = 120_000;

/** Plays the client's side of a recorded stream and lists how the server's side differs. */
export async function playStream(client: Client, recorded: GrpcCase): Promise<string[]> {
  const stream = new RecordedStream(client, recorded);
  const differences: string[] = [];
  for (const [index, event] of (recorded.events ?? []).entries()) {
    const found = await stream.play(event);
    if (stream.endedEarly) break;
    differences.push(...found.map((difference) => `event ${index}: ${difference}`));
    if (found.length > 0) break;
  }
  stream.abandon();
  return differences;
}

type Incoming = { readonly message: JsonMessage } | { readonly status: RecordedStatus };

class RecordedStream {
  readonly #call: ClientDuplexStream<JsonMessage, JsonMessage>;
  readonly #incoming: Incoming[] = [];
  readonly #flags: GrpcCase["flags"];
  readonly #lastStatus: RecordedStatus | undefined;
  /** The stream ended as recorded, with fewer messages because of a race. */
  endedEarly = false;
  #wake: (() => void) | undefined;

  constructor(client: Client, recorded: GrpcCase) {
    const rpc = findRpc(recorded.rpc);
    this.#flags = recorded.flags;
    this.#lastStatus = recorded.events?.findLast((event) => event.status !== undefined)?.status;
    this.#call = client.makeBidiStreamRequest(
      rpc.path,
      (message: JsonMessage) => encodeMessage(rpc.request, message),
      (bytes: Buffer) => decodeMessage(rpc.response, bytes),
      metadataOf(recorded),
      callOptions(recorded.deadline_ms),
    );
    this.#call.on("data", (message: JsonMessage) => this.#arrive({ message }));
    this.#call.on("status", (ended) => this.#arrive({ status: statusOf(ended) }));
    // A status that is not OK is reported twice; the `status` event is enough.
    this.#call.on("error", () => {});
  }

  abandon(): void {
    this.#call.cancel();
  }

  async play(event: RecordedEvent): Promise<string[]> {
    if (event.sleep_ms !== undefined) await sleep(event.sleep_ms);
    if (event.send !== undefined) this.#call.write(event.send);
    if (event.half_close) this.#call.end();
    if (event.cancel) this.#call.cancel();
    if (event.recv) {
      const got = await this.#next();
      if ("status" in got && this.#mayEndWith(got.status)) return [];
      if ("status" in got)
        return [`expected a message, got status ${got.status.code} "${got.status.details}"`];
      return compareMessage(event.recv, got.message, this.#flags);
    }
    if (event.status) {
      const got = await this.#next();
      if ("message" in got)
        return [`expected status ${event.status.code}, got ${JSON.stringify(got.message)}`];
      return compareStatus(event.status, got.status, this.#flags);
    }
    return [];
  }

  #mayEndWith(status: RecordedStatus): boolean {
    this.endedEarly = (this.#flags?.includes("racy") ?? false) && this.#lastStatus?.code === status.code;
    return this.endedEarly;
  }

  #arrive(incoming: Incoming): void {
    this.#incoming.push(incoming);
    this.#wake?.();
  }

  async #next(): Promise<Incoming> {
    const end = Date.now() + EVENT_TIMEOUT_MS;
    while (this.#incoming.length === 0) {
      if (Date.now() > end) throw new Error(`nothing came on the stream in ${EVENT_TIMEOUT_MS} ms`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, EVENT_TIMEOUT_MS);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.#incoming.shift() as Incoming;
  }
}
