import type { ModelConfig, ModelInput, Tensor } from "@tritonjs/protocol";

import type { SessionData } from "./create-session.js";

/** The shape of a tensor inside the model. */
function shapeOf({ dims, reshape }: Pick<ModelInput, "dims" | "reshape">): readonly number[] {
  return reshape?.shape ?? dims;
}

/**
 * Names of inputs that the session gets without dimensions. An input of unknown rank is a scalar if its configuration
 * has a single element, as in Triton's onnxruntime backend.
 */
export function scalarInputs(
  { scalars, ranksUnknown }: Pick<SessionData, "scalars" | "ranksUnknown">,
  { maxBatchSize, input }: Pick<ModelConfig, "maxBatchSize" | "input">,
): ReadonlySet<string> {
  const single = input.filter((one) => maxBatchSize === 0 && shapeOf(one).every((dim) => dim === 1));
  const names = single.map(({ name }) => name).filter((name) => ranksUnknown.includes(name));
  return new Set([...scalars, ...names]);
}

/**
 * Gives scalar outputs the dimensions of the configuration, `[1]`, as Triton's onnxruntime backend does. A
 * configuration cannot have a tensor without dimensions.
 */
export function scalarOutputs({
  maxBatchSize,
  output,
}: Pick<ModelConfig, "maxBatchSize" | "output">): (outputs: Map<string, Tensor>) => Map<string, Tensor> {
  if (maxBatchSize > 0) return (outputs) => outputs;
  const shapes = new Map(output.map((one) => [one.name, shapeOf(one)]));
  return (outputs) => {
    for (const [name, tensor] of outputs) {
      if (tensor.shape.length > 0) continue;
      const shape = shapes.get(name) ?? [];
      if (shape.every((dim) => dim === 1)) outputs.set(name, tensor.reshaped(shape));
    }
    return outputs;
  };
}
