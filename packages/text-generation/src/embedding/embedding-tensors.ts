import type { TensorSpec } from "@tritonjs/core";

/** Inputs of a model made by {@link textEmbedder}. */
export const EMBEDDING_INPUTS = [
  { name: "text_input", dtype: "BYTES", shape: [1] },
] as const satisfies readonly TensorSpec[];

/** Outputs of a model made by {@link textEmbedder}. */
export const EMBEDDING_OUTPUTS = [
  { name: "embedding", dtype: "FP32", shape: [-1] },
] as const satisfies readonly TensorSpec[];
