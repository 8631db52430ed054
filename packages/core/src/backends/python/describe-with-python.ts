import { readFileSync } from "node:fs";
import type { ModelDescription } from "../../instance/backend.js";
import { describeInWorker } from "../describe-in-worker.js";
import { mayCompleteItself } from "./complete-with-python.js";
import type { PythonSettings } from "./python-session.js";

/** The data that a worker needs to describe a Python model. */
export interface PythonDescription {
  readonly settings: PythonSettings;
  /** Parameters of its configuration. */
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * Describes a model with its `auto_complete_config`, for `bind`. This thread blocks meanwhile. Returns undefined for a
 * model without the method.
 *
 * @throws TritonError with the reason why the model cannot be described
 */
export function describeWithPython(what: PythonDescription): ModelDescription | undefined {
  const { path, stubTimeoutMs, loadTimeoutMs } = what.settings;
  if (!mayCompleteItself(readFileSync(path, "utf8"))) return undefined;
  const entry = new URL("./description-program.js", import.meta.url);
  const withinMs = stubTimeoutMs + loadTimeoutMs + 1000;
  const description = describeInWorker(entry, what, withinMs, `the Python model '${path}'`);
  const isSilent =
    description.inputs.length === 0 &&
    description.outputs.length === 0 &&
    description.maxBatchSize === undefined &&
    description.decoupled === undefined;
  return isSilent ? undefined : description;
}
