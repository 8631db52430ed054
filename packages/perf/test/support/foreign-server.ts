import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

/** What a server of the v2 protocol has besides its required part. */
export interface ForeignParts {
  readonly statistics?: boolean;
  /** Answer to a request for the configuration of the model, or true for a configuration. */
  readonly config?: true | { readonly status: number; readonly body: string };
}

/** A server of the v2 protocol for a model "m" that doubles rows of two FP32 values. Its tensors are JSON. */
export class ForeignServer {
  /** Shapes of the requests that it answered. */
  readonly shapes: (readonly number[])[] = [];
  readonly #parts: ForeignParts;
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  private constructor(parts: ForeignParts) {
    this.#parts = parts;
  }

  /** Starts a server on a free port, until the test has finished. */
  static async start(parts: ForeignParts): Promise<ForeignServer> {
    const server = new ForeignServer(parts);
    await new Promise<void>((resolve) => {
      server.#server.listen(0, "127.0.0.1", resolve);
    });
    onTestFinished(() => server.kill());
    return server;
  }

  get url(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Closes all connections in the middle of their requests, and takes no further ones. */
  kill(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [status, body] = this.#bodyOf(request.url!, await text(request).catch(() => ""));
    response.statusCode = status;
    response.setHeader("content-type", "application/json");
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  }

  #bodyOf(path: string, body: string): [status: number, body: unknown] {
    const { statistics, config = { status: 404, body: '{"detail":"Not Found"}' } } = this.#parts;
    switch (path) {
      case "/v2":
        return [200, { name: "foreign", version: "1", extensions: statistics ? ["statistics"] : [] }];
      case "/v2/models/m":
        return [200, METADATA];
      case "/v2/models/m/ready":
        return [200, ""];
      case "/v2/models/m/config":
        return config === true ? [200, CONFIG] : [config.status, config.body];
      case "/v2/models/m/stats":
        return statistics ? [200, this.#statistics()] : [404, "Cannot GET /v2/models/m/stats"];
      case "/v2/models/m/infer":
        return this.#infer(body);
      default:
        return [404, { error: `no path ${path}` }];
    }
  }

  #infer(body: string): [status: number, body: unknown] {
    let inputs: { readonly shape: readonly number[]; readonly data: readonly number[] }[];
    try {
      ({ inputs } = JSON.parse(body));
    } catch {
      return [400, { error: "expected JSON" }];
    }
    const { shape, data } = inputs[0]!;
    this.shapes.push(shape);
    const output = { name: "y", datatype: "FP32", shape, data: data.flat().map((value) => 2 * value) };
    return [200, { model_name: "m", outputs: [output] }];
  }

  #statistics(): object {
    const count = this.shapes.length;
    const stage = (ms: number) => ({ count, ns: count * ms * 1e6 });
    const inference_stats = {
      success: stage(4),
      queue: stage(1),
      compute_input: stage(0),
      compute_infer: stage(3),
      compute_output: stage(0),
    };
    const rows = this.shapes.reduce((sum, [first = 0]) => sum + first, 0);
    return {
      model_stats: [
        { name: "m", version: "1", inference_count: rows, execution_count: count, inference_stats },
      ],
    };
  }
}

const METADATA = {
  name: "m",
  versions: ["1"],
  platform: "foreign",
  inputs: [{ name: "x", datatype: "FP32", shape: [-1, 2] }],
  outputs: [{ name: "y", datatype: "FP32", shape: [-1, 2] }],
};

const CONFIG = {
  name: "m",
  max_batch_size: 4,
  input: [{ name: "x", data_type: "TYPE_FP32", dims: [2] }],
  output: [{ name: "y", data_type: "TYPE_FP32", dims: [2] }],
};
