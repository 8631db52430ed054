import type { AddedModel, AddModelOptions } from "./repo-add/add-model.js";

export { processTerminal, type Terminal, type ToolTerminal } from "@tritonjs/perf/internal";
export type { CommandAdditions } from "./command-context.js";
export { OptionError } from "./options/option.js";
export { type OptionName, type OptionValues, optionGroups } from "./options/options.js";
export { readArguments } from "./options/read-arguments.js";
export { run } from "./run.js";
export type { AddedModel, AddModelOptions };

/**
 * Adds a model to a model repository: recognises the files, and writes the model's folder with its configuration,
 * tokenizer, chat template and class names. A model of texts or images becomes an ensemble with the steps before it.
 * The folders appear at once and complete; a fault leaves the repository as it was.
 *
 * @throws TritonError NOT_FOUND for a missing source, INVALID_ARG for faulty files, UNSUPPORTED for what is not served,
 * ALREADY_EXISTS for a model or version that is there, UNAVAILABLE for files that cannot be written
 *
 * @example
 * ```ts
 * import { addModel } from "@tritonjs/cli";
 *
 * const { name, models } = await addModel({ source: "all-MiniLM-L6-v2", repository: "models" });
 * ```
 */
export async function addModel(options: AddModelOptions): Promise<AddedModel> {
  const adding = await import("./repo-add/add-model.js");
  return adding.addTrainedModel(options);
}
