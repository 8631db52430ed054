import type { OnnxSession } from "@tritonjs/core/onnxruntime";
import { type DescribedTensor, TritonError } from "@tritonjs/protocol";
import type { DecoderConfig } from "./decoder-config.js";
import type { KvLayer, KvLayout } from "./kv-block.js";

/** Inputs and outputs of a decoder's graph, as Optimum names them. */
export interface DecoderGraph {
  readonly kv: KvLayout;
  readonly hasPositions: boolean;
  /** True for a graph that has a branch without past keys and values, which the first pass takes. */
  readonly hasCacheBranch: boolean;
  /** True if the graph computes the logits of the last columns alone, given their number. */
  readonly keepsLastLogits: boolean;
  /** Data type of token numbers. */
  readonly integers: "INT64" | "INT32";
}

const PAST = /^past_key_values\.(\d+)\.(key|value)$/;

const KNOWN = new Set([
  "input_ids",
  "attention_mask",
  "position_ids",
  "use_cache_branch",
  "num_logits_to_keep",
]);

/**
 * Reads how a session wants its tokens, keys and values.
 *
 * @throws TritonError INVALID_ARG if it is not a decoder with past keys and values
 */
export function readDecoderGraph(session: OnnxSession, file: string, config: DecoderConfig): DecoderGraph {
  const inputs = new Map(session.inputs.map((input) => [input.name, input]));
  const outputs = new Map(session.outputs.map((output) => [output.name, output]));
  const fail = (expected: string, got: string) => notADecoder(file, expected, got);
  const past = session.inputs.filter(({ name }) => PAST.test(name));
  const unknown = session.inputs.find(({ name }) => !KNOWN.has(name) && !PAST.test(name));
  if (unknown !== undefined) throw fail("the inputs of a text decoder", `the input '${unknown.name}'`);
  for (const name of ["input_ids", "attention_mask"]) {
    if (!inputs.has(name)) throw fail(`the input '${name}'`, list(inputs.keys()));
  }
  if (past.length === 0) {
    throw fail(
      "inputs 'past_key_values.0.key' and so on: export it with Optimum's task text-generation-with-past",
      list(inputs.keys()),
    );
  }
  if (!outputs.has("logits")) throw fail("the output 'logits'", list(outputs.keys()));
  const layers = past.map((input) => layerOf(input, outputs, config, fail));
  const datatype = past[0]!.dtype;
  if (datatype !== "FP32" && datatype !== "FP16") throw fail("keys and values of FP32 or FP16", datatype);
  const integers = inputs.get("input_ids")!.dtype;
  if (integers !== "INT64" && integers !== "INT32") throw fail("'input_ids' of INT64 or INT32", integers);
  return {
    kv: { layers, datatype },
    hasPositions: inputs.has("position_ids"),
    hasCacheBranch: inputs.has("use_cache_branch"),
    keepsLastLogits: inputs.has("num_logits_to_keep"),
    integers,
  };
}

function layerOf(
  { name, shape }: DescribedTensor,
  outputs: ReadonlyMap<string, DescribedTensor>,
  config: DecoderConfig,
  fail: (expected: string, got: string) => TritonError,
): KvLayer {
  const [, index, kind] = PAST.exec(name)!;
  const output = `present.${index}.${kind}`;
  if (!outputs.has(output)) throw fail(`the output '${output}'`, list(outputs.keys()));
  if (shape.length !== 4) throw fail(`'${name}' with 4 dimensions`, `${shape.length}`);
  const heads = shape[1]! > 0 ? shape[1]! : config.kvHeads;
  const size = shape[3]! > 0 ? shape[3]! : config.headSize;
  if (heads === undefined || size === undefined || !Number.isInteger(size)) {
    throw fail(
      "'num_attention_heads' and 'hidden_size' in config.json, because the graph leaves the sizes open",
      "none",
    );
  }
  return { input: name, output, heads, size };
}

function notADecoder(file: string, expected: string, got: string): TritonError {
  return new TritonError("INVALID_ARG", `cannot use ${file} as a decoder: expected ${expected}, got ${got}`, {
    reason: "INVALID_MODEL",
  });
}

function list(names: Iterable<string>): string {
  const all = [...names];
  return all.length > 8 ? `${all.slice(0, 8).join(", ")} and ${all.length - 8} more` : all.join(", ");
}
