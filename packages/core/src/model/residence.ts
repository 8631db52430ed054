import type { Isolation, ModelConfig, TritonError } from "@tritonjs/protocol";
import type { ModelStatistics } from "../observe/statistics.js";
import type { SequenceCounts } from "../scheduler/scheduler.js";

/** The place of a model version that may leave memory while it serves. */
export interface Residence {
  /** True while its instances are there. Otherwise a request has to call `want`. */
  readonly isResident: boolean;
  /** With this error, requests are refused for a while after a load has failed. @default none are refused */
  readonly failure?: TritonError | undefined;
  /** Why the last load failed; undefined if it did not. */
  readonly problem?: string | undefined;
  /**
   * Puts the version into service: in memory, or on disk only.
   *
   * @param now whether it is in memory before it serves
   */
  start(now: boolean): Promise<void>;
  /** A request waits for the instances. @param urgent true if running work waits for the request */
  want(urgent: boolean): void;
  /**
   * Keeps the version where it is, in memory or on disk, until `unpin`: its configuration changes. @default it stays
   * where it is by itself
   */
  pin?(): Promise<void>;
  unpin?(): void;
  /** The version is unloaded. */
  end?(): void;
}

/** A model version as its place in memory sees it. */
export interface TenantModel {
  readonly name: string;
  readonly namespace: string;
  readonly version: number;
  readonly config: ModelConfig;
  /** Directory of the version; undefined for a bound model. */
  readonly directory: string | undefined;
  readonly statistics: ModelStatistics;
  /** Requests accepted and not yet answered. */
  readonly inflightCount: number;
  readonly sequences: SequenceCounts | undefined;
  /** Where its instances run; undefined if there are none. */
  readonly isolation: Isolation | undefined;
  reason: string;
  /** Loads all instances, which then take the requests that wait. */
  arrive(): Promise<void>;
  /** Releases all instances, once their batches are done. Requests wait in the queue. */
  leave(): Promise<void>;
  /** Fails the requests that wait. */
  failQueued(error: TritonError): void;
}
