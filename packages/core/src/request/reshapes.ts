import type { ModelConfig, ModelInput, ModelOutput, Tensor } from "@tritonjs/protocol";
import { reshapeRule } from "../tensor/reshape-rule.js";

type Tensors = ReadonlyMap<string, Tensor>;

/** Gives tensors the shapes that others want. */
export type Reshape = (tensors: Tensors) => Tensors;

/** How tensors of a model with `reshape` in its configuration go in and out; undefined where nothing changes. */
export interface Reshapes {
  /** From what clients send to what the model sees. */
  readonly inputs: Reshape | undefined;
  /** From what the model returns to what clients get. */
  readonly outputs: Reshape | undefined;
}

/** The reshapes that a configuration asks for. */
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
