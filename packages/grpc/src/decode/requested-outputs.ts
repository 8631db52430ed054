import type { RegionRange, RequestRegions } from "@tritonjs/core/frontend";
import type { inference } from "@tritonjs/grpc-messages";
import { invalidArgument } from "./invalid-argument.js";
import { decodeSharedMemoryRange } from "./shared-memory-parameters.js";

type RequestedOutput = inference.ModelInferRequest.InferRequestedOutputTensor.$Properties;

/** How to return an output that is not simply part of the answer. */
export interface OutputForm {
  /** Number of classes to return instead of the tensor. */
  readonly classes?: number;
  /** Range of shared memory for the output. */
  readonly range?: RegionRange;
}

/** Forms of outputs by name. */
export type OutputForms = ReadonlyMap<string, OutputForm>;

/** All outputs as the model returned them. */
export const NO_FORMS: OutputForms = new Map();
const NO_NAMES: readonly string[] = [];

/** Names of the requested outputs, each once; empty for all outputs. */
export function requestedOutputNames(outputs: readonly RequestedOutput[]): readonly string[] {
  return outputs.length === 0 ? NO_NAMES : [...new Set(outputs.map(({ name }) => name ?? ""))];
}

/**
 * Reads how to return the requested outputs. If an output is listed twice, its first form counts.
 *
 * @param regions Holds the shared memory that outputs name, until the caller releases it.
 * @throws TritonError INVALID_ARG for wrong parameters, NOT_FOUND for an unknown shared-memory region.
 */
export function decodeOutputForms(outputs: readonly RequestedOutput[], regions: RequestRegions): OutputForms {
  let forms: Map<string, OutputForm> | undefined;
  for (const output of outputs) {
    const form = decodeForm(output, regions);
    if (form === undefined) continue;
    forms ??= new Map();
    const name = output.name ?? "";
    if (!forms.has(name)) forms.set(name, form);
  }
  return forms ?? NO_FORMS;
}

function decodeForm(output: RequestedOutput, regions: RequestRegions): OutputForm | undefined {
  const range = decodeSharedMemoryRange(output);
  const classes = classificationCount(output);
  if (range === undefined) return classes === undefined ? undefined : { classes };
  if (classes !== undefined) {
    throw invalidArgument(
      "output can't set both 'shared_memory_region' and 'classification'",
      "INVALID_REQUESTED_OUTPUT",
    );
  }
  return { range: regions.hold(range) };
}

function classificationCount(output: RequestedOutput): number | undefined {
  const parameter = output.parameters?.classification;
  if (parameter === undefined) return undefined;
  if (parameter.parameterChoice !== "int64Param") {
    throw invalidArgument(
      "invalid value type for 'classification' parameter, expected int64_param",
      "INVALID_REQUESTED_OUTPUT",
    );
  }
  const count = parameter.int64Param ?? 0;
  if (count <= 0)
    throw invalidArgument(
      "invalid value for 'classification' parameter, expected >= 0",
      "INVALID_REQUESTED_OUTPUT",
    );
  return Number(count);
}
