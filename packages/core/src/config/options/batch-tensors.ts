import {
  BATCH_INPUT_KINDS,
  BATCH_OUTPUT_KINDS,
  type ModelConfig,
  type TensorSpec,
  toConfigDataType,
} from "@tritonjs/protocol";

type BatchTensors = Pick<ModelConfig, "batchInput" | "batchOutput">;

/**
 * Batch inputs and batch outputs of the specifications, as Triton's configuration has them. Kinds of this library are
 * left out.
 */
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

/** Lists problems with the batch inputs and outputs of a configuration, in Triton's words. */
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
