import type { MessagePort } from "node:worker_threads";
import type { RequestMemoryOptions } from "@tritonjs/core";
import type { AllowedHosts, Restrictions, ServiceChange } from "@tritonjs/core/frontend";
import type { AccessGroup } from "@tritonjs/core/types";
import type { ServerMetadata } from "@tritonjs/protocol";
import type { LinkEnd } from "../link/thread-link.js";

/** Everything that a thread is started with. */
export interface FrontendThreadData {
  readonly link: LinkEnd;
  /** Carries calls in both directions, changes of the service, and wake-ups. */
  readonly control: MessagePort;
  /** Words for {@link SIGNAL}. */
  readonly signals: SharedArrayBuffer;
  readonly service: ServiceData;
}

/** Index of the word that counts the messages of the engine that a thread must see before it continues. */
export const SIGNAL = 0;

/** The parts of the service that never change. */
export interface ServiceData {
  readonly metadata: ServerMetadata;
  readonly namespacing: boolean;
  readonly restrictions: Restrictions;
  readonly allowedHosts?: AllowedHosts;
  /** Undefined if every client is accepted. */
  readonly authentication:
    | { readonly challenge: string; readonly publicEndpoints: readonly AccessGroup[] }
    | undefined;
  /** Whether the server has traces. */
  readonly traces: boolean;
  readonly allowsSharedMemory: boolean;
  /** Counts of the users of regions. */
  readonly regionUsers: Int32Array;
  readonly requestMemory: RequestMemoryOptions;
  /** Rows in which threads count the memory of requests, and the row of this thread. */
  readonly memoryRows: Float64Array;
  readonly memoryRow: number;
  /** `performance.timeOrigin` of the engine, whose clock times all traces. */
  readonly timeOrigin: number;
  readonly state: ServiceChange;
}
