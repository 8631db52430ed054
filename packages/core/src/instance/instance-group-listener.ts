import type { Payload } from "../batch/payload.js";
import type { ModelInstance } from "./model-instance.js";

/** Callbacks from instances to their scheduler. */
export interface InstanceGroupListener {
  /** There may be room for another payload: a queued payload was taken or cancelled, or an execution ended. */
  slotFreed(): void;
  /** An instance failed, or recovered. */
  healthChanged?(healthy: boolean): void;
}

/** Is notified when each execution starts and ends. */
export interface ExecutionObserver {
  started(instance: ModelInstance, payload: Payload, now: number): void;
  ended(instance: ModelInstance, payload: Payload, now: number): void;
}
