import { fromConfigDataType, type ModelConfig, type TensorSpec, TritonError } from "@tritonjs/protocol";
import { targetLatencyMs } from "../config/options/target-latency.js";

import type { VariableLengthOptions } from "../config/options/variable-length-options.js";

import { elementOf } from "../tensor/pad.js";
import type { CutOutput, MaskInput, PaddingRules } from "./padding-rules.js";

/** The model's own functions that decide which requests share a batch, and how many. */
export type BatchGrouping = Pick<VariableLengthOptions, "batchBy" | "cost" | "maxBatchCost">;

/** A model's rules for requests whose lengths differ. */
export interface VariableLength {
  readonly grouping: BatchGrouping;
  /** Inputs whose shapes may differ within a batch. */
  readonly padded: ReadonlySet<string>;
  readonly padding: PaddingRules | undefined;
}

/** Reads the options and checks them. Undefined if none of them is given. */
export function planVariableLength(
  options: VariableLengthOptions,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
  config: ModelConfig,
): { readonly variableLength: VariableLength | undefined; readonly problems: readonly string[] } {
  const { batchBy, cost, maxBatchCost, pad } = options;
  const padded = paddedInputs(pad, config);
  const masks = inputs.flatMap(({ name, dtype, batchInput }): MaskInput[] =>
    batchInput?.kind === "PADDING_MASK"
      ? [{ name, datatype: dtype, sourceInput: batchInput.sourceInput }]
      : [],
  );
  const cuts = outputs.flatMap(({ name, batchOutput }): CutOutput[] =>
    batchOutput?.kind === "CUT_TO_INPUT_SHAPE" ? [{ name, sourceInput: batchOutput.sourceInput }] : [],
  );
  const problems = [
    ...groupingProblems(options),
    ...(batchBy !== undefined && targetLatencyMs(config) !== undefined
      ? ["config.batcher.batchBy and config.batcher.targetLatencyMs are both given: leave one of them out"]
      : []),
    ...padProblems(pad, config),
    ...[...masks, ...cuts]
      .filter(({ sourceInput }) => !padded.has(sourceInput))
      .map(
        ({ name, sourceInput }) =>
          `'${name}' follows the padding of input '${sourceInput}', which is not padded`,
      ),
  ];
  if (batchBy === undefined && cost === undefined && maxBatchCost === undefined && pad === undefined) {
    return { variableLength: undefined, problems };
  }
  const byFunction = typeof pad === "function" ? pad : undefined;
  const values = typeof pad === "function" ? {} : pad;
  const padding = values && { values, pad: byFunction, masks, cuts };
  return { variableLength: { grouping: { batchBy, cost, maxBatchCost }, padded, padding }, problems };
}

function paddedInputs(pad: VariableLengthOptions["pad"], config: ModelConfig): ReadonlySet<string> {
  if (typeof pad !== "function") return new Set(Object.keys(pad ?? {}));
  return new Set(config.input.filter(isVariable).map(({ name }) => name));
}

function isVariable({ dims }: { readonly dims: readonly number[] }): boolean {
  return dims.includes(-1);
}

function groupingProblems({ batchBy, cost, maxBatchCost }: VariableLengthOptions): string[] {
  const problems: string[] = [];
  for (const [name, value] of Object.entries({ batchBy, cost })) {
    if (value !== undefined && typeof value !== "function") {
      problems.push(`config.batcher.${name}: expected a function, got ${typeof value}`);
    }
  }
  if (cost !== undefined && maxBatchCost === undefined) {
    problems.push("config.batcher.cost has no effect without config.batcher.maxBatchCost: give both");
  }
  if (maxBatchCost === undefined) return problems;
  if (cost === undefined)
    problems.push("config.batcher.maxBatchCost has no effect without config.batcher.cost: give both");
  if (!Number.isFinite(maxBatchCost) || maxBatchCost <= 0) {
    problems.push(`config.batcher.maxBatchCost: expected a number above 0, got ${maxBatchCost}`);
  }
  return problems;
}

function padProblems(pad: VariableLengthOptions["pad"], config: ModelConfig): string[] {
  if (pad === undefined || typeof pad === "function") return [];
  if (typeof pad !== "object" || pad === null) {
    return [`config.batcher.pad: expected values by input name, or a function, got ${typeof pad}`];
  }
  return Object.entries(pad).flatMap(([name, value]) => {
    const input = config.input.find((one) => one.name === name);
    const where = `config.batcher.pad names input '${name}', which`;
    if (input === undefined) return [`${where} the model does not have`];
    if (!isVariable(input)) return [`${where} has no variable dimension`];
    if (input.allowRaggedBatch || input.isShapeTensor) return [`${where} is ragged or a shape tensor`];
    const datatype = fromConfigDataType(input.dataType);
    if (datatype === undefined) return [];
    try {
      elementOf(value, datatype, `config.batcher.pad of input '${name}'`);
      return [];
    } catch (error) {
      return [TritonError.from(error).message];
    }
  });
}
