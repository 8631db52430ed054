import { toConfigDataType } from "../tensor/data-type.js";
import type { ModelConfig } from "./model-config.js";
import type { TensorSpec } from "./tensor-spec.js";

/** Triton's kinds of inputs that are made of the shapes of another one, over all requests of a batch. */
export const BATCH_INPUT_KINDS = [
  "BATCH_ELEMENT_COUNT",
  "BATCH_ACCUMULATED_ELEMENT_COUNT",
  "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
  "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
  "BATCH_ITEM_SHAPE",
  "BATCH_ITEM_SHAPE_FLATTEN",
] as const;

/** Triton's kinds of outputs that are handed out to requests by the shapes of an input. */
export const BATCH_OUTPUT_KINDS = ["BATCH_SCATTER_WITH_INPUT_SHAPE"] as const;

/**
 * What an input is made of that clients do not send:
 *
 * | kind | shape in the batch | values |
 * |---|---|---|
 * | `BATCH_ELEMENT_COUNT` | [requests] | elements of the source in each request |
 * | `BATCH_ACCUMULATED_ELEMENT_COUNT` | [requests] | the same, each with all before it |
 * | `BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO` | [requests + 1] | the same after a 0 |
 * | `BATCH_MAX_ELEMENT_COUNT_AS_SHAPE` | [most elements of a request] | 0 |
 * | `BATCH_ITEM_SHAPE` | [rows, rank] | shape of the source in each row, before padding |
 * | `BATCH_ITEM_SHAPE_FLATTEN` | [rows * rank] | the same |
 * | `PADDING_MASK` | as the padded source | 1 for an element of the request, 0 where it was filled up |
 *
 * All but the last are Triton's, and INT32 or FP32.
 */
export interface BatchInputSpec {
  readonly kind: (typeof BATCH_INPUT_KINDS)[number] | "PADDING_MASK";
  readonly sourceInput: string;
}

/**
 * How an output is handed out to the requests of a batch. Its variable dimensions are those of an input of the request,
 * axis by axis.
 *
 * - `BATCH_SCATTER_WITH_INPUT_SHAPE` (Triton's): the model returns the elements of all requests one after another.
 * - `CUT_TO_INPUT_SHAPE`: the model returns rows that are as long as the padded input, and each request gets back as much
 *   as it sent.
 */
export interface BatchOutputSpec {
  readonly kind: (typeof BATCH_OUTPUT_KINDS)[number] | "CUT_TO_INPUT_SHAPE";
  readonly sourceInput: string;
}

type BatchTensors = Pick<ModelConfig, "batchInput" | "batchOutput">;

/** Those of the specifications that are Triton's, as its configuration has them. */
export function batchTensorsOf(inputs: readonly TensorSpec[], outputs: readonly TensorSpec[]): BatchTensors {
  return {
    batchInput: inputs.flatMap(({ name, dtype, batchInput }) =>
      batchInput === undefined || batchInput.kind === "PADDING_MASK"
        ? []
        : [
            {
              kind: batchInput.kind,
              targetName: [name],
              dataType: toConfigDataType(dtype),
              sourceInput: [batchInput.sourceInput],
            },
          ],
    ),
    batchOutput: outputs.flatMap(({ name, batchOutput }) =>
      batchOutput === undefined || batchOutput.kind === "CUT_TO_INPUT_SHAPE"
        ? []
        : [{ targetName: [name], kind: batchOutput.kind, sourceInput: [batchOutput.sourceInput] }],
    ),
  };
}

/** What is wrong with the batch inputs and outputs of a configuration, in Triton's words. */
export function batchTensorProblems(config: ModelConfig): string[] {
  const inputs = new Set(config.input.map(({ name }) => name));
  const outputs = new Set(config.output.map(({ name }) => name));
  const problems: string[] = [];
  const checkSources = (kind: string, what: string, known: readonly string[], sources: readonly string[]) => {
    if (!known.includes(kind)) problems.push(`unknown batch ${what} kind '${kind}'`);
    else if (sources.length !== 1) {
      problems.push(`batch ${what} kind '${kind}' expects 1 source input, got ${sources.length}`);
    }
  };
  const unknownSources = (sources: readonly string[]) => {
    for (const source of sources) {
      if (!inputs.has(source)) problems.push(`unknown source input name '${source}'`);
    }
  };
  for (const { kind, dataType, sourceInput, targetName } of config.batchInput) {
    checkSources(kind, "input", BATCH_INPUT_KINDS, sourceInput);
    if (dataType !== "TYPE_INT32" && dataType !== "TYPE_FP32") {
      problems.push("batch input data type must be TYPE_INT32 or TYPE_FP32");
    }
    unknownSources(sourceInput);
    for (const name of targetName) {
      if (inputs.has(name))
        problems.push(`batch input '${name}' has the name of an input that clients send: rename one of them`);
    }
  }
  for (const { kind, sourceInput, targetName } of config.batchOutput) {
    checkSources(kind, "output", BATCH_OUTPUT_KINDS, sourceInput);
    unknownSources(sourceInput);
    const seen = new Set<string>();
    for (const name of targetName) {
      if (!outputs.has(name)) problems.push(`unknown target output name '${name}'`);
      if (seen.has(name)) problems.push(`target output name '${name}' can only be specified once`);
      seen.add(name);
    }
  }
  return problems.map((problem) => `${problem} for ${config.name}`);
}
