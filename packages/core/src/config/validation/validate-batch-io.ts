import type { ModelConfig } from "@tritonjs/protocol";
import { batchInputKind, batchOutputKind } from "../schema/enums.js";

/** Lists problems with batch inputs and batch outputs, with Triton's texts. */
export function batchIoProblems({ input, output, batchInput, batchOutput }: ModelConfig): string[] {
  const inputs = input.map(({ name }) => name);
  const outputs = output.map(({ name }) => name);
  const problems: string[] = [];
  const checkSources = (what: string, kind: string, known: object, sources: readonly string[]) => {
    if (!Object.hasOwn(known, kind)) problems.push(`unknown batch ${what} kind '${kind}'`);
    else if (sources.length !== 1) {
      problems.push(`batch ${what} kind '${kind}' expects 1 source input, got ${sources.length}`);
    }
  };
  const checkKnown = (sources: readonly string[]) => {
    for (const name of sources) {
      if (!inputs.includes(name)) problems.push(`unknown source input name '${name}'`);
    }
  };
  for (const { kind, dataType, sourceInput } of batchInput) {
    checkSources("input", kind, batchInputKind.values, sourceInput);
    if (dataType !== "TYPE_INT32" && dataType !== "TYPE_FP32") {
      problems.push("batch input data type must be TYPE_INT32 or TYPE_FP32");
    }
    checkKnown(sourceInput);
  }
  for (const { kind, sourceInput, targetName } of batchOutput) {
    checkSources("output", kind, batchOutputKind.values, sourceInput);
    checkKnown(sourceInput);
    for (const [index, name] of targetName.entries()) {
      if (!outputs.includes(name)) problems.push(`unknown target output name '${name}'`);
      else if (targetName.indexOf(name) < index) {
        problems.push(`target output name '${name}' can only be specified once`);
      }
    }
  }
  return problems;
}

/** Lists the problems with batch inputs that Triton's backends report before all others. */
export function batchInputTypeProblems({ batchInput }: ModelConfig): string[] {
  return batchInput
    .filter(({ dataType }) => dataType === "TYPE_INVALID")
    .map(({ dataType }) => `unexpected batch input data type '${dataType}'`);
}
