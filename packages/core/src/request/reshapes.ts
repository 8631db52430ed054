import type { ModelConfig, ModelInput, ModelOutput, Tensor } from "@tritonjs/protocol";
import { reshapeRule } from "../tensor/reshape-rule.js";

type Tensors = ReadonlyMap<string, Tensor>;

/** Changes the shapes of tensors. */
export type Reshape = (tensors: Tensors) => Tensors;

/** Shape changes for a model with `reshape` in its configuration; undefined where nothing changes. */
export interface Reshapes {
  /** From the shapes that clients send to those that the model expects. */
  readonly inputs: Reshape | undefined;
  /** From the shapes that the model returns to those that clients get. */
  readonly outputs: Reshape | undefined;
}

/** The shape changes that a configuration asks for. */
export function reshapesOf({ input, output, maxBatchSize }: ModelConfig): Reshapes {
  const batched = maxBatchSize > 0;
  return {
    inputs: reshapeAll(input, (dims, shape) => reshapeRule(dims, shape, batched)),
    outputs: reshapeAll(output, (dims, shape) => reshapeRule(shape, dims, batched)),
  };
}

function reshapeAll(
  tensors: readonly (ModelInput | ModelOutput)[],
  ruleOf: (dims: readonly number[], shape: readonly number[]) => (tensor: Tensor) => Tensor,
): Reshape | undefined {
  const rules = new Map<string, (tensor: Tensor) => Tensor>();
  for (const { name, dims, reshape } of tensors) {
    if (reshape !== undefined) rules.set(name, ruleOf(dims, reshape.shape));
  }
  if (rules.size === 0) return undefined;
  return (given) => new Map([...given].map(([name, tensor]) => [name, rules.get(name)?.(tensor) ?? tensor]));
}
