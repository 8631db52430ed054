import type { InstanceHosting } from "../../config/instance-hosting.js";
import type { ModelSource } from "../../instance/backend.js";
import { askWorker } from "../ask-worker.js";
import type { ModuleProbe, ProbeData } from "./probe-model.js";

/**
 * Asks a module about its model, in a worker of its own: what it does while it is imported, and in its
 * `autoCompleteConfig`, can neither hold up this thread nor end this process.
 *
 * @throws TritonError with what is wrong with the module, or that it takes too long
 */
export function probeModule(
  module: string,
  { name, version, config, autoComplete, warn }: ModelSource,
  hosting: InstanceHosting,
  loadTimeoutMs: number,
): Promise<ModuleProbe> {
  const data: ProbeData = { module, autoComplete };
  const entry = new URL("./probe-model.js", import.meta.url);
  const program = { entry, data, interruptible: true, loadTimeoutMs };
  return askWorker<ModuleProbe>(program, { name, version, config, hosting, warn }, "probe");
}
