import { AnsweredTensors, type Parameters, type SharedMemoryOutput, type Tensor } from "../core.js";

/** What an answer consists of. */
export interface InferResultInit {
  /** The id of the request; empty when it had none. */
  readonly id: string;
  readonly modelName: string;
  readonly modelVersion: string;
  /** Parameters that the model, or the server, sent with the outputs. */
  readonly parameters: Parameters;
  /** Outputs in the order of the answer, without those in shared memory. */
  readonly tensors: ReadonlyMap<string, Tensor>;
  /** Outputs that the server has put into shared memory. */
  readonly sharedMemoryOutputs: ReadonlyMap<string, SharedMemoryOutput>;
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
export class InferResult extends AnsweredTensors implements InferResultInit {
  readonly id: string;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly parameters: Parameters;

  constructor({ id, modelName, modelVersion, parameters, tensors, sharedMemoryOutputs }: InferResultInit) {
    super(tensors, sharedMemoryOutputs);
    this.id = id;
    this.modelName = modelName;
    this.modelVersion = modelVersion;
    this.parameters = parameters;
  }
}
