import { readFileSync } from "node:fs";
import type { ModelDescription } from "../../instance/backend.js";
import { describeInWorker } from "../describe-in-worker.js";
import { mayCompleteItself } from "./complete-with-python.js";
import type { PythonSettings } from "./python-session.js";

/** What a worker needs that describes a Python model. */
export interface PythonDescription {
  readonly settings: PythonSettings;
  /** Parameters of its configuration. */
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * What `auto_complete_config` of a model says of it, for `bind`: this thread stands still meanwhile. Undefined for a
 * model without the method.
 *
 * @throws TritonError with why the model says nothing
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
