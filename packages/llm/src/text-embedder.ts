import { batch, type InferContext, type TensorSpec } from "@tritonjs/core";
import { callbackExecutor, type TypedBackend } from "@tritonjs/core/backend";
import { TritonError } from "@tritonjs/protocol";

/** Inputs of a model made by {@link textEmbedder}. */
const EMBEDDING_INPUTS = [
  { name: "text_input", dtype: "BYTES", shape: [1] },
] as const satisfies readonly TensorSpec[];

/** Outputs of a model made by {@link textEmbedder}. */
const EMBEDDING_OUTPUTS = [
  { name: "embedding", dtype: "FP32", shape: [-1] },
] as const satisfies readonly TensorSpec[];

/** An embedding: one number for each dimension. */
export type EmbeddingVector = Float32Array | readonly number[];

/** A function that makes embeddings, as {@link textEmbedder} takes it: one vector for each text, in the same order. */
export type EmbeddingCallback = (
  texts: readonly string[],
  context: InferContext,
) => readonly EmbeddingVector[] | Promise<readonly EmbeddingVector[]>;

/**
 * Makes a model of a function that turns texts into embeddings. The texts of a batch come from many requests. The model
 * has the input `text_input` and the output `embedding`, so `/v1/embeddings` of the OpenAI frontend calls it too.
 *
 * @throws TritonError INVALID_ARG unless `callback` is a function. A callback that returns another number of vectors
 * than texts, or vectors of different lengths, fails its batch with INTERNAL (reason INVALID_OUTPUT).
 * @example
 * ```ts
 * const embed = triton.bind({
 *   modelName: "embed",
 *   inferFunc: textEmbedder(async (texts) => encoder.run(texts)),
 *   config: { maxBatchSize: 32 },
 * });
 * const { embedding } = await embed.inferSample({ text_input: ["hello"] }); // embedding: ndarray of shape [384]
 * ```
 */
export function textEmbedder(
  callback: EmbeddingCallback,
): TypedBackend<typeof EMBEDDING_INPUTS, typeof EMBEDDING_OUTPUTS> {
  if (typeof callback !== "function") {
    const text = `textEmbedder(): callback: expected a function, got ${typeof callback}`;
    throw new TritonError("INVALID_ARG", text, { reason: "INVALID_OPTION" });
  }
  const inferFunc = batch<typeof EMBEDDING_INPUTS, typeof EMBEDDING_OUTPUTS>(
    async ({ text_input }, context) => {
      const texts = text_input.strings();
      const vectors = await callback(texts, context);
      return { embedding: rowsOf(vectors, texts.length, context.modelName) };
    },
  );
  return {
    backendName: "javascript",
    platform: "",
    describe: () => ({ inputs: withRows(EMBEDDING_INPUTS), outputs: withRows(EMBEDDING_OUTPUTS) }),
    createExecutor: (context) => callbackExecutor(inferFunc, context),
  };
}

/** The tensors with their batch axis. */
function withRows(specs: readonly TensorSpec[]): TensorSpec[] {
  return specs.map((spec) => ({ ...spec, shape: [-1, ...spec.shape] }));
}

/** Joins vectors to rows. */
function rowsOf(vectors: readonly EmbeddingVector[], count: number, modelName: string): Float32Array {
  const length = Array.isArray(vectors) ? (vectors[0]?.length ?? 0) : 0;
  if (length === 0 || vectors.length !== count || vectors.some((one) => one?.length !== length)) {
    throw wrongVectors(vectors, count, modelName);
  }
  const rows = new Float32Array(count * length);
  for (let i = 0; i < count; i++) rows.set(vectors[i]!, i * length);
  return rows;
}

function wrongVectors(vectors: unknown, count: number, modelName: string): TritonError {
  const got = Array.isArray(vectors)
    ? `${vectors.length} with the lengths [${[...new Set(vectors.map((one) => one?.length))].join(", ")}]`
    : `a ${typeof vectors}`;
  return new TritonError(
    "INTERNAL",
    `model '${modelName}': textEmbedder: expected ${count} vectors of one length above 0, got ${got}`,
    { reason: "INVALID_OUTPUT" },
  );
}
