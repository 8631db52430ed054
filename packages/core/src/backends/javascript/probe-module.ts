import { realClock } from "../../clock/clock.js";
import type { InstanceHosting } from "../../config/instance-hosting.js";
import type { ModelSource } from "../../instance/backend.js";
import { WorkerExecutor } from "../../instance/worker/worker-executor.js";
import { OutputChecker } from "../../response/check-outputs.js";
import type { ModuleProbe, ProbeData } from "./probe-model.js";

/**
 * Asks a module about its model, in a worker of its own: what it does while it is imported, and in its
 * `autoCompleteConfig`, can neither hold up this thread nor end this process.
 *
 * @throws TritonError with what is wrong with the module, or that it takes too long
 */
export async function probeModule(
  module: string,
  { name, version, config, autoComplete, warn }: ModelSource,
  hosting: InstanceHosting,
  loadTimeoutMs: number,
): Promise<ModuleProbe> {
  const data: ProbeData = { module, autoComplete };
  const entry = new URL("./probe-model.js", import.meta.url);
  const worker = new WorkerExecutor(
    { entry, data, interruptible: true, loadTimeoutMs },
    {
      info: {
        modelName: name,
        modelVersion: version,
        modelConfig: config,
        instanceName: `${name}_probe`,
        instanceIndex: 0,
        device: { kind: "KIND_CPU", id: 0 },
      },
      checker: new OutputChecker(config),
      clock: realClock,
      hosting,
      warn,
    },
  );
  try {
    await worker.start();
    return JSON.parse(worker.details.probe!) as ModuleProbe;
  } finally {
    await worker.stop();
  }
}
