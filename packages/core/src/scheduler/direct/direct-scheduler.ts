import type { TritonError } from "@tritonjs/protocol";
import { Payload } from "../../batch/payload.js";
import type { InstanceGroup } from "../../instance/instance-group.js";
import type { InferenceRequest } from "../../request/inference-request.js";
import { isPartOfWork, type Scheduler, stoppedError } from "../scheduler.js";

/** Triton's default scheduler: each request is a payload of its own, in order of arrival. */
export class DirectScheduler implements Scheduler {
  readonly queuedCount = 0;
  readonly #instances: InstanceGroup;
  #stopped = false;

  constructor(instances: InstanceGroup) {
    this.#instances = instances;
  }

  enqueue(request: InferenceRequest): void {
    if (this.#stopped && !isPartOfWork(request)) throw stoppedError(request);
    const payload = new Payload();
    payload.saturated = true;
    payload.complete = true;
    payload.add(request);
    this.#instances.enqueue(payload);
  }

  stop(): void {
    this.#stopped = true;
  }

  failQueued(error: TritonError): void {
    this.#instances.failQueued(error);
  }
}
