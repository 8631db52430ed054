import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import type { Triton } from "@tritonjs/core";
import { CHUNK, CONTEXT } from "./silero-model.js";

/**
 * Binds the network for streams: a request is a chunk of 32 ms, and the answer is the probability that it is speech.
 * The server keeps both states of a stream, the LSTM's and the end of the previous chunk, from its START to its END.
 */
export function bindDetector(
  triton: Triton,
  model: Uint8Array,
  { modelName, maxBatchSize }: { readonly modelName: string; readonly maxBatchSize: number },
) {
  return triton.bind({
    modelName,
    inferFunc: onnxruntime({ model }),
    inputs: [{ name: "chunk", dtype: "FP32", shape: [CHUNK] }],
    outputs: [{ name: "output", dtype: "FP32", shape: [1] }],
    config: {
      maxBatchSize,
      sequence: {
        // Streams that have a state at the same time. The next ones wait for a free slot.
        maxCandidateSequences: 128,
        maxSequenceIdleMicroseconds: 10_000_000,
        states: [
          { input: "state_in", output: "state_out", dtype: "FP32", shape: [2, 128] },
          { input: "context", output: "context_out", dtype: "FP32", shape: [CONTEXT] },
        ],
      },
    },
  });
}
