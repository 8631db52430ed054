import type { ModelConfig, ModelWarmup } from "../config/model-config.js";
import { dataFilePath } from "../files/data-file.js";

/**
 * Says where the data files of warmup samples are: in the folder `warmup/` of the model's directory. Without a directory
 * the configuration has paths already.
 *
 * @throws TritonError INVALID_ARG for a file outside of the folder.
 */
export function withDataFiles(config: ModelConfig, directory: string | undefined): ModelConfig {
  if (directory === undefined || config.modelWarmup.length === 0) return config;
  return { ...config, modelWarmup: config.modelWarmup.map((sample) => withPaths(sample, directory)) };
}

function withPaths(sample: ModelWarmup, directory: string): ModelWarmup {
  const inputs = Object.entries(sample.inputs).map(([name, input]) => {
    const { inputDataFile: file } = input;
    const place = file === undefined ? {} : { inputDataFile: dataFilePath(directory, "warmup", file) };
    return [name, { ...input, ...place }] as const;
  });
  return { ...sample, inputs: Object.fromEntries(inputs) };
}
