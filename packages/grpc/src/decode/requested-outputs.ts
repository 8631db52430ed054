import { TritonError } from "@tritonjs/core";
import type { inference } from "#proto";
import { invalidArgument } from "./invalid-argument.js";
import { decodeSharedMemoryRange } from "./shared-memory-parameters.js";

type RequestedOutput = inference.ModelInferRequest.InferRequestedOutputTensor.$Properties;

/** Outputs to return as classes: the number of classes by name. */
export type Classifications = ReadonlyMap<string, number>;

const NO_CLASSIFICATIONS: Classifications = new Map();

/** Names of the outputs that a request asks for, each once; empty for all. */
export function requestedOutputNames(outputs: readonly RequestedOutput[]): string[] {
  return [...new Set(outputs.map(({ name }) => name ?? ""))];
}

/**
 * Reads how the requested outputs are to be returned.
 *
 * @throws TritonError INVALID_ARG for wrong parameters, NOT_FOUND for an unknown shared-memory region.
 */
export function decodeClassifications(outputs: readonly RequestedOutput[]): Classifications {
  let classifications: Map<string, number> | undefined;
  for (const output of outputs) {
    const range = decodeSharedMemoryRange(output);
    const count = classificationCount(output);
    if (range !== undefined) {
      if (count !== undefined) {
        throw invalidArgument("output can't set both 'shared_memory_region' and 'classification'");
      }
      throw new TritonError("NOT_FOUND", `Unable to find shared memory region: '${range.region}'`);
    }
    if (count === undefined) continue;
    classifications ??= new Map();
    const name = output.name ?? "";
    if (!classifications.has(name)) classifications.set(name, count);
  }
  return classifications ?? NO_CLASSIFICATIONS;
}

function classificationCount(output: RequestedOutput): number | undefined {
  const parameter = output.parameters?.classification;
  if (parameter === undefined) return undefined;
  if (parameter.parameterChoice !== "int64Param") {
    throw invalidArgument("invalid value type for 'classification' parameter, expected int64_param");
  }
  const count = parameter.int64Param ?? 0;
  if (count <= 0) throw invalidArgument("invalid value for 'classification' parameter, expected >= 0");
  return Number(count);
}
