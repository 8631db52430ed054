import type { Tensors } from "../../batch/merge-inputs.js";
import type { ModelConfig } from "../../config/model-config.js";
import type { Tensor } from "../../tensor/tensor.js";

/**
 * Gives outputs without dimensions those of the configuration, which has no tensors without: `[1]`, as Triton's
 * onnxruntime backend does.
 */
export function scalarOutputs({
  maxBatchSize,
  output,
}: Pick<ModelConfig, "maxBatchSize" | "output">): (outputs: Map<string, Tensor>) => Tensors {
  if (maxBatchSize > 0) return (outputs) => outputs;
  const shapes = new Map(output.map(({ name, dims, reshape }) => [name, reshape?.shape ?? dims]));
  return (outputs) => {
    for (const [name, tensor] of outputs) {
      if (tensor.shape.length > 0) continue;
      const shape = shapes.get(name) ?? [];
      if (shape.every((dim) => dim === 1)) outputs.set(name, tensor.reshaped(shape));
    }
    return outputs;
  };
}
