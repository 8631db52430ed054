import { randomUUID } from "node:crypto";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import type { FrontProxy } from "./front-proxy.js";

/** Loops that send at the same time, for each protocol: one request after the other, and one sequence after the other. */
const LOOPS = 3;
const STEPS = 5;

type Client = HttpClient | GrpcClient;
type ClientOptions = NonNullable<ConstructorParameters<typeof HttpClient>[1]>;

/** Requests and sequences through a proxy, over both protocols, until it is stopped. Each answer is checked. */
export class ProxiedLoad implements AsyncDisposable {
  /** Answered requests outside sequences, by the version that answered. */
  readonly answered: Record<string, number> = {};
  /** Sequences with all their answers. */
  sequences = 0;
  /** What went wrong with requests outside sequences, as `protocol: text`. */
  readonly lostRequests: string[] = [];
  /** What went wrong with sequences. A sequence ends with its first error. */
  readonly lostSequences: string[] = [];
  readonly #clients: Readonly<Record<string, Client>>;
  readonly #loops: Promise<unknown>;
  /** Distinguishes the sequences of two loads. */
  readonly #name = randomUUID();
  #stopped = false;

  constructor(proxy: FrontProxy, options: ClientOptions = {}) {
    const all = { sequenceHeader: "x-sequence-id", timeoutMs: 120_000, ...options };
    this.#clients = {
      http: new HttpClient(proxy.http, all),
      grpc: new GrpcClient(proxy.grpc, all as object),
    };
    this.#loops = Promise.all(
      Object.entries(this.#clients).flatMap(([protocol, client]) =>
        Array.from({ length: LOOPS }, (_, loop) => [
          this.#send(protocol, client),
          this.#sendSequences(protocol, client, loop),
        ]).flat(),
      ),
    );
  }

  /** Requests and sequences that were answered so far. */
  get total(): number {
    return this.sequences + Object.values(this.answered).reduce((sum, count) => sum + count, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await this.#loops;
    for (const client of Object.values(this.#clients)) client.close();
  }

  async #send(protocol: string, client: Client): Promise<void> {
    for (let x = 1; !this.#stopped; x++) {
      try {
        const result = await client.infer("double", {
          inputs: { x: { datatype: "FP32", shape: [1, 1], data: [x] } },
        });
        const [y] = result.elements("y", "FP32");
        if (y !== 2 * x) throw new Error(`expected ${2 * x}, got ${y}`);
        this.answered[result.modelVersion] = (this.answered[result.modelVersion] ?? 0) + 1;
      } catch (error) {
        this.lostRequests.push(`${protocol}: ${(error as Error).message}`);
      }
    }
  }

  async #sendSequences(protocol: string, client: Client, loop: number): Promise<void> {
    for (let number = 1; !this.#stopped; number++) {
      const id = `${this.#name}-${protocol}-${loop}-${number}`;
      try {
        for (let step = 1; step <= STEPS; step++) {
          const result = await client.infer("sum", {
            inputs: { x: { datatype: "FP32", shape: [1, 1], data: [step] } },
            sequence: { id, start: step === 1, end: step === STEPS },
          });
          const [sum] = result.elements("y", "FP32");
          if (sum !== (step * (step + 1)) / 2)
            throw new Error(`wrong sum ${sum} after step ${step} of ${id}`);
        }
        this.sequences++;
      } catch (error) {
        this.lostSequences.push(`${protocol}: ${(error as Error).message}`);
      }
    }
  }
}
