import type { Payload } from "../batch/payload.js";
import type { ModelInstance } from "./model-instance.js";

/** What a scheduler hears from the instances it feeds. */
export interface InstanceGroupListener {
  /** A queued payload was taken or given up, or an execution ended: there may be room for another payload. */
  slotFreed(): void;
  /** An instance broke down, or came back. */
  healthChanged?(healthy: boolean): void;
}

/** Hears when each execution starts and ends. */
export interface ExecutionObserver {
  started(instance: ModelInstance, payload: Payload, now: number): void;
  ended(instance: ModelInstance, payload: Payload, now: number): void;
}
