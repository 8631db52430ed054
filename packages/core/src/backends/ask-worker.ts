import type { InstanceHosting, ModelConfig } from "@tritonjs/protocol";
import { instanceDevice } from "../callback/instance-device.js";
import { OutputChecker } from "../request/inference-response.js";
import { realClock } from "../system/clock.js";
import type { WorkerProgram } from "../worker/open-worker.js";
import { WorkerExecutor } from "../worker/worker-executor.js";

export interface AskedModel {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly hosting?: InstanceHosting;
  readonly warn: (message: string) => void;
}

/** Starts a worker to read one of its details, which is JSON, then ends the worker. */
export async function askWorker<Answer>(
  program: WorkerProgram,
  { name, version, config, hosting, warn }: AskedModel,
  detail: string,
): Promise<Answer> {
  const worker = new WorkerExecutor(program, {
    info: {
      modelName: name,
      modelVersion: version,
      modelConfig: config,
      instanceName: `${name}_${detail}`,
      instanceIndex: 0,
      device: instanceDevice("KIND_CPU", 0),
    },
    checker: new OutputChecker(config),
    clock: realClock,
    hosting,
    warn,
  });
  try {
    await worker.start();
    return JSON.parse(worker.details[detail]!) as Answer;
  } finally {
    await worker.stop();
  }
}
