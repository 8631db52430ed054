import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
import type { Triton } from "@tritonjs/core";
import { onnxruntime } from "@tritonjs/core/onnxruntime";
import type { BatchingRequest } from "@tritonjs/core/types";
import { textEmbedder } from "@tritonjs/text-generation";

/** Files of the encoder, seen from `dist`. */
const folder = new URL("../models/encoder/", import.meta.url);
const readJson = (file: string) => JSON.parse(readFileSync(new URL(file, folder), "utf8"));

const tokensOf = ({ inputs }: BatchingRequest): number => inputs.input_ids!.shape[1]!;

/**
 * Binds `encoder`, the ONNX model, and `embed`, which turns texts into embeddings with it.
 *
 * Texts of about the same length share a batch of the encoder, padded to the longest of them, wherever their requests
 * come from. The embedding is the mean of the vectors of a text's tokens, of length 1.
 */
export function bindEncoder(triton: Triton) {
  const tokenizer = new Tokenizer(readJson("tokenizer.json"), readJson("tokenizer_config.json"));
  const encoder = triton.bind({
    modelName: "encoder",
    inputs: [
      { name: "input_ids", dtype: "INT64", shape: [-1] },
      { name: "attention_mask", dtype: "INT64", shape: [-1] },
    ],
    outputs: [
      {
        name: "last_hidden_state",
        dtype: "FP32",
        shape: [-1, 48],
        // The vectors of a text's own tokens, without those of the padding.
        batchOutput: { kind: "CUT_TO_INPUT_SHAPE", sourceInput: "input_ids" },
      },
    ],
    inferFunc: onnxruntime({ model: new URL("model.onnx", folder) }),
    config: {
      maxBatchSize: 32,
      batcher: {
        batchBy: (request) => Math.ceil(tokensOf(request) / 4),
        cost: tokensOf,
        maxBatchCost: 512,
        pad: { input_ids: 0, attention_mask: 0 },
      },
    },
  });
  const embed = triton.bind({
    modelName: "embed",
    inferFunc: textEmbedder((texts) =>
      Promise.all(
        texts.map(async (text) => {
          const ids = tokenizer.encode(text).ids;
          const { last_hidden_state } = await encoder.inferSample({
            input_ids: ids,
            attention_mask: ids.map(() => 1),
          });
          return meanVector(last_hidden_state.data, ids.length);
        }),
      ),
    ),
    config: { maxBatchSize: 64 },
  });
  return { encoder, embed };
}

/** Mean of `count` vectors, scaled to length 1. */
function meanVector(vectors: Float32Array, count: number): Float32Array {
  const width = vectors.length / count;
  const mean = new Float32Array(width);
  for (let i = 0; i < vectors.length; i++) mean[i % width]! += vectors[i]!;
  const length = Math.hypot(...mean);
  return mean.map((value) => value / length);
}
