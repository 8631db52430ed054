import { join } from "node:path";
import { TritonError } from "@tritonjs/core";
import type { BackendFactory } from "@tritonjs/core/backend";
import { readForest } from "./forest.js";
import { ForestExecutor } from "./forest-executor.js";

/**
 * Runs decision forests: `backend: "forest"`, with the trees in `<version>/trees.json`.
 *
 * @example
 * ```ts
 * new Triton({ extensions: [repository({ modelRepository: "./models", backends: { forest } })] });
 * ```
 */
export const forest: BackendFactory = ({ versionDirectory, config }) => {
  const path = join(versionDirectory, config.defaultModelFilename || "trees.json");
  return {
    backendName: "forest",
    platform: "",
    // All dimensions, rows included. This description completes the configuration, and the configuration is checked
    // against it.
    describe() {
      const { features, classes } = readForest(path);
      return {
        inputs: [{ name: "features", dtype: "FP32", shape: [-1, features] }],
        outputs: [{ name: "votes", dtype: "FP32", shape: [-1, classes] }],
      };
    },
    checkConfig({ name, instanceGroup }) {
      if (!instanceGroup.some(({ kind }) => kind === "KIND_GPU")) return;
      throw new TritonError("INVALID_ARG", `model '${name}': the backend 'forest' has no instances on GPUs`);
    },
    createExecutor: () => new ForestExecutor(path),
  };
};
