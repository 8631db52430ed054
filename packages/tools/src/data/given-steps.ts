import { stat } from "node:fs/promises";
import type { DataOptions } from "./data-options.js";
import { stepOfDirectory } from "./directory-step.js";
import { invalidOption } from "./invalid-option.js";
import { stepsOfFile } from "./json-steps.js";
import type { Step, Steps } from "./steps.js";
import type { TestedModel } from "./tested-model.js";

/**
 * Reads rows from a directory, or from JSON files.
 *
 * @throws TritonError INVALID_ARG that names the file, the entry and the input.
 */
export async function givenSteps(
  model: TestedModel,
  paths: readonly string[],
  { shapes = {}, fixedSchedule = false }: DataOptions,
): Promise<Steps> {
  const streams: (readonly Step[])[] = [];
  const rules = { model, shapes, fixedSchedule };
  for (const path of paths) {
    const info = await stat(path).catch((cause: Error) => {
      throw invalidOption(
        `--input-data: expected a file or directory, cannot read '${path}': ${cause.message}`,
        cause,
      );
    });
    if (!info.isDirectory()) streams.push(...(await stepsOfFile(path, rules)));
    else if (paths.length > 1)
      throw invalidOption(`--input-data: expected one directory, got '${path}' among others`);
    else streams.push([await stepOfDirectory(path, rules)]);
  }
  if (streams.flat().length === 0)
    throw invalidOption(`--input-data: expected entries, got none in ${paths.join(", ")}`);
  return { streams: streams.filter((stream) => stream.length > 0), areGiven: true };
}
