import type { ModelConfig } from "@tritonjs/protocol";
import { DeadlineQueue } from "../clock/deadline-queue.js";
import { dataFilesOf } from "../files/data-file.js";
import { readFileNow } from "../files/read-small-file.js";
import type { ModelStatistics } from "../observe/statistics.js";
import { RequestValidator } from "../request/validate-request.js";
import { createScheduler } from "../scheduler/create-scheduler.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import type { Callee } from "./call-graph.js";
import { createInstances } from "./create-instances.js";
import { EnsembleMembers } from "./ensemble-members.js";
import type { LiveInstances } from "./live-instances.js";
import type { ModelFaults } from "./model-faults.js";
import { ModelRequests } from "./model-requests.js";
import type { ModelVersionInit } from "./model-version-init.js";
import { warmUp } from "./warm-up.js";

/** The parts of one model version that process its requests. */
export interface ModelParts {
  readonly live: LiveInstances;
  readonly scheduler: Scheduler;
  readonly requests: ModelRequests;
  /** Set for an ensemble. */
  readonly members: EnsembleMembers | undefined;
}

/** Creates the parts of a model version from its configuration and connects them. */
export function createParts(
  init: ModelVersionInit,
  statistics: ModelStatistics,
  model: Callee & { readonly config: ModelConfig },
  faults: ModelFaults,
): ModelParts {
  const { name, version, config, clock, directory } = init;
  const deadlines = new DeadlineQueue(clock);
  const validator = new RequestValidator(config);
  const live = createInstances({ ...init, statistics, faults });
  const readFile = directory === undefined ? readFileNow : dataFilesOf(directory, "warmup");
  live.warmUp = (instance) =>
    warmUp(model.config, instance, validator, statistics, () => clock.now(), readFile);
  const instances = live.group;
  const members = config.ensembleScheduling && new EnsembleMembers(config);
  const scheduler = createScheduler({ ...init, instances, deadlines, statistics });
  const requests = new ModelRequests({
    ...{ name, version, clock, statistics, instances, deadlines, validator, scheduler },
    outputs: config.output.map((output) => output.name),
    calls: init.calls,
    log: init.log,
    callee: model,
    responseCache: config.responseCache?.enable ? init.responseCache : undefined,
  });
  return { live, scheduler, requests, members };
}
