import {
  fromConfigDataType,
  type ModelConfig,
  type ModelInput,
  type ModelMetadata,
  type ModelOutput,
  type TensorMetadata,
} from "@tritonjs/protocol";

/** The v2 metadata of a model whose `versions` are served. */
export function modelMetadata(config: ModelConfig, versions: readonly number[]): ModelMetadata {
  const tensor = ({ name, dataType, dims }: ModelInput | ModelOutput): TensorMetadata => ({
    name,
    datatype: fromConfigDataType(dataType) ?? "<invalid>",
    shape: config.maxBatchSize > 0 ? [-1, ...dims] : [...dims],
  });
  return {
    name: config.name,
    versions: versions.map(String),
    platform: config.platform === "" ? config.backend : config.platform,
    inputs: config.input.map(tensor),
    outputs: config.output.map(tensor),
  };
}

/**
 * Writes the `.d.ts` text that types `triton.infer` and `triton.bind` for models of complete configurations. It adds
 * each model to `TritonModels`. If several models have one name, the first is used.
 */
export function modelTypes(configs: readonly ModelConfig[]): string {
  const models = new Map<string, string>();
  for (const config of configs) {
    if (!models.has(config.name)) models.set(config.name, modelType(config));
  }
  return [
    "// Written by `tritonjs types`: do not edit.",
    'import "@tritonjs/core";',
    "",
    'declare module "@tritonjs/core" {',
    "  interface TritonModels {",
    ...models.values(),
    "  }",
    "}",
    "",
  ].join("\n");
}

function modelType({ name, input, output }: ModelConfig): string {
  return [
    `    ${JSON.stringify(name)}: {`,
    `      inputs: ${tuple(input)};`,
    `      outputs: ${tuple(output)};`,
    "    };",
  ].join("\n");
}

function tuple(tensors: readonly (ModelInput | ModelOutput)[]): string {
  if (tensors.length === 0) return "readonly []";
  return ["readonly [", ...tensors.map((tensor) => `        ${tensorType(tensor)},`), "      ]"].join("\n");
}

function tensorType(tensor: ModelInput | ModelOutput): string {
  const dtype = fromConfigDataType(tensor.dataType);
  const fields = [
    `readonly name: ${JSON.stringify(tensor.name)}`,
    `readonly dtype: ${dtype === undefined ? "never" : JSON.stringify(dtype)}`,
    `readonly shape: readonly [${tensor.dims.join(", ")}]`,
    ...("optional" in tensor && tensor.optional ? ["readonly optional: true"] : []),
  ];
  return `{ ${fields.join("; ")} }`;
}
