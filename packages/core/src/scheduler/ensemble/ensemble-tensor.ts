import { type ModelConfig, matchesShape, type Tensor } from "@tritonjs/protocol";
import type { SequencePlace } from "../../request/sequence-info.js";
import { copyTensor } from "../../tensor/copy.js";

/**
 * A tensor between the steps of an ensemble. Its last reader gets the tensor itself, and earlier readers get copies,
 * because a model may write to its inputs.
 */
export class EnsembleTensor {
  #tensor: Tensor | undefined;
  #readers: number;

  /**
   * @param tensor undefined for an optional input that was not given, or an output that a model left out
   * @param batchSize rows along the batch axis; 0 for a tensor without one
   * @param sequence sequence of the steps that read it; undefined for a tensor of the ensemble's own request
   */
  constructor(
    tensor: Tensor | undefined,
    private readonly batchSize: number,
    readers: number,
    readonly sequence?: SequencePlace,
  ) {
    this.#tensor = tensor;
    this.#readers = readers;
  }

  /** Takes the tensor for one of its readers, in the shape expected by a model with these dimensions. */
  take(dims: readonly number[], batched: boolean): Tensor | undefined {
    const tensor = this.#tensor;
    if (tensor === undefined) return undefined;
    this.#readers--;
    if (this.#readers <= 0) this.#tensor = undefined;
    const shape = convertShape(tensor.shape, this.batchSize, dims, batched);
    const own = this.#readers > 0 ? copyTensor(tensor) : tensor;
    return shape === tensor.shape ? own : own.reshaped(shape);
  }
}

/** Dimensions of a member's input, or of the ensemble's output. */
export function dimsOf(
  tensors: ModelConfig["input"] | ModelConfig["output"],
  name: string,
): readonly number[] {
  return tensors.find((tensor) => tensor.name === name)?.dims ?? [];
}

/** Dimensions of an input or output of the ensemble itself, as its steps see them. */
export function innerDimsOf(
  tensors: ModelConfig["input"] | ModelConfig["output"],
  name: string,
): readonly number[] {
  return tensors.find((tensor) => tensor.name === name)?.reshape?.shape ?? dimsOf(tensors, name);
}

/**
 * Converts the shape of a tensor that goes from a model with a batch axis to one without, or back. An axis of one row
 * is added or removed if the dimensions do not fit as they are. Between models with a batch axis, rows of one value each
 * may lack their second axis, as the answers of Triton's FIL backend do.
 */
export function convertShape(
  shape: readonly number[],
  batchSize: number,
  dims: readonly number[],
  batched: boolean,
): readonly number[] {
  if (batched === batchSize > 0) return batched && lacksAxisOfOne(shape, dims) ? [...shape, 1] : shape;
  const fits = matchesShape(dims, shape);
  if (batched) return fits ? [1, ...shape] : shape;
  return !fits && batchSize === 1 ? shape.slice(1) : shape;
}

function lacksAxisOfOne(shape: readonly number[], dims: readonly number[]): boolean {
  return shape.length === 1 && dims.length === 1 && dims[0] === 1;
}
