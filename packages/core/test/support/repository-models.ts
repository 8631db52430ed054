import type { ModelConfig } from "@tritonjs/protocol";
import { emptyModelConfig } from "../../src/config/defaults.js";

/** An ensemble with a step for each member; a plain model if there are no members. */
export function ensembleConfig(name: string, members: readonly string[]): ModelConfig {
  const config = { ...emptyModelConfig(), name };
  if (members.length === 0) return config;
  const step = members.map((modelName) => ({
    modelName,
    modelVersion: -1,
    inputMap: {},
    outputMap: {},
    modelNamespace: "",
  }));
  return { ...config, ensembleScheduling: { step } };
}
