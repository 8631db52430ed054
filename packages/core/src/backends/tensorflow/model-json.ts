import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { TritonError } from "@tritonjs/protocol";

/** A tensor of the weights. */
export interface WeightSpec {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly quantization?: { readonly dtype: string };
}

/** Files of weights, and the weights in them one after the other. */
export interface WeightsGroup {
  readonly paths: readonly string[];
  readonly weights: readonly WeightSpec[];
}

/** A tensor of a signature. */
export interface SignatureTensor {
  /** Name of the node: `x:0`. */
  readonly name: string;
  readonly dtype?: string;
  readonly tensorShape?: {
    readonly dim?: readonly { readonly size: string | number }[];
    readonly unknownRank?: boolean;
  };
}

/** The model's tensors by the names that clients use. */
export interface Signature {
  readonly inputs?: Readonly<Record<string, SignatureTensor>>;
  readonly outputs?: Readonly<Record<string, SignatureTensor>>;
}

/** A `model.json` of TensorFlow.js. */
export interface ModelJson {
  readonly path: string;
  readonly kind: "graph" | "layers";
  readonly weightsManifest: readonly WeightsGroup[];
  readonly signature: Signature;
  /** The whole content, for TensorFlow.js. */
  readonly content: Readonly<Record<string, unknown>>;
}

/**
 * Reads a `model.json`.
 *
 * @throws TritonError NOT_FOUND for a missing file, INVALID_ARG for a file that is not a model.
 */
export function readModelJson(path: string): ModelJson {
  const content = parse(path);
  const topology = content.modelTopology as Record<string, unknown> | undefined;
  if (typeof topology !== "object" || topology === null) {
    throw new TritonError("INVALID_ARG", `'${path}' is not a TensorFlow.js model: it has no modelTopology`, {
      reason: "INVALID_MODEL",
    });
  }
  const { format, weightsManifest = [], signature, userDefinedMetadata } = content;
  const isGraph = format === "graph-model" || (format === undefined && "node" in topology);
  return {
    path,
    kind: isGraph ? "graph" : "layers",
    weightsManifest: weightsManifest as WeightsGroup[],
    signature: (signature ??
      (userDefinedMetadata as { signature?: Signature })?.signature ??
      {}) as Signature,
    content,
  };
}

function parse(path: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const { message } = TritonError.from(cause);
    throw new TritonError("NOT_FOUND", `cannot open the TensorFlow.js model '${path}': ${message}`, {
      reason: "MODEL_FILES_NOT_FOUND",
      cause,
    });
  }
  try {
    const content: unknown = JSON.parse(text);
    if (typeof content === "object" && content !== null) return content as Record<string, unknown>;
  } catch (cause) {
    const { message } = TritonError.from(cause);
    throw new TritonError("INVALID_ARG", `cannot read the TensorFlow.js model '${path}': ${message}`, {
      reason: "INVALID_MODEL",
      cause,
    });
  }
  throw new TritonError("INVALID_ARG", `'${path}' is not a TensorFlow.js model: it is not a JSON object`, {
    reason: "INVALID_MODEL",
  });
}

/** Paths of the files of weights, in the order of their bytes. */
export function weightFiles({ path, weightsManifest }: ModelJson): string[] {
  return weightsManifest.flatMap(({ paths }) => paths.map((file) => join(dirname(path), file)));
}

/** Bytes of all weights; undefined if some are strings, whose size is unknown. */
export function weightBytes({ weightsManifest }: ModelJson): number | undefined {
  let total = 0;
  for (const { weights } of weightsManifest) {
    for (const { shape, dtype, quantization } of weights) {
      const size = BYTES[quantization?.dtype ?? dtype];
      if (size === undefined) return undefined;
      total += size * shape.reduce((count, dim) => count * dim, 1);
    }
  }
  return total;
}

const BYTES: Readonly<Record<string, number>> = {
  float32: 4,
  int32: 4,
  bool: 1,
  uint8: 1,
  uint16: 2,
  float16: 2,
  complex64: 8,
};
