import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { TritonError } from "@tritonjs/core";
import { type BackendFactory, callbackExecutor, type ModelFiles } from "@tritonjs/core/backend";
import type { PlayedModel } from "./behaviours/behaviour.js";

/** Makes a callback that behaves like the code of a Python model; throws when loading that code would fail. */
export type PlayPython = (code: string, source: ModelFiles) => (model: PlayedModel) => unknown;

/**
 * The backend `python` of the recordings: callbacks play the code of a model.
 * @param sleep how models pass time
 */
export function playedPython(play: PlayPython, sleep: (ms: number) => Promise<void>): BackendFactory {
  return (source) => {
    const file = join(source.versionDirectory, "model.py");
    if (!existsSync(file)) {
      throw new TritonError("INTERNAL", `model.py does not exist in the model repository path: ${file}`);
    }
    const callbackFor = play(readFileSync(file, "utf8"), source);
    return {
      backendName: "python",
      platform: "",
      describe: () => undefined,
      createExecutor: (context) => {
        const { input, output } = context.info.modelConfig;
        const model = {
          version: source.version,
          inputNames: input.map(({ name }) => name),
          outputNames: output.map(({ name }) => name),
          sleep,
        };
        return callbackExecutor(callbackFor(model), context);
      },
    };
  };
}
