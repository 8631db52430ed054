import { AnsweredTensors, type Parameters, type SharedMemoryOutput, type Tensor } from "../core.js";
import type { JsonObject } from "../json/parse-json.js";

/** What an answer consists of. */
export interface InferResultInit {
  readonly json: JsonObject;
  readonly tensors: ReadonlyMap<string, Tensor>;
  readonly sharedMemoryOutputs: ReadonlyMap<string, SharedMemoryOutput>;
  readonly headers: Headers;
}

/**
 * The answer to an inference. Arrays are views of the received bytes where their alignment allows it.
 *
 * @example
 * ```ts
 * const result = await client.infer("linear", { inputs: { x: { datatype: "FP32", shape: [1, 2], data: [1, 2] } } });
 * result.outputs.y;             // ndarray of shape [1, 3]
 * result.array("y", "FP32");    // the same, known to hold a Float32Array
 * result.elements("y", "FP32"); // Float32Array(3)
 * ```
 */
export class InferResult extends AnsweredTensors {
  /** The JSON of the answer as it came, without what followed it. */
  readonly json: JsonObject;
  readonly headers: Headers;

  constructor({ json, tensors, sharedMemoryOutputs, headers }: InferResultInit) {
    super(tensors, sharedMemoryOutputs);
    this.json = json;
    this.headers = headers;
  }

  /** The id of the request; empty when it had none. */
  get id(): string {
    return text(this.json.id);
  }

  get modelName(): string {
    return text(this.json.model_name);
  }

  get modelVersion(): string {
    return text(this.json.model_version);
  }

  /** Parameters that the model, or the server, sent with the outputs. */
  get parameters(): Parameters {
    return (this.json.parameters ?? {}) as Parameters;
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
