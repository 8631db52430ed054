import type { ModelConfig, Tensor } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import type { VariableLength } from "../batch/variable-length.js";
import type { ResponseCache } from "../cache/response-cache.js";
import type { CallModels } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import type { HostPolicies } from "../config/placement/host-policy.js";
import type { ModelControl } from "../instance/backend.js";
import type { RateLimiter } from "../instance/rate-limiter/rate-limiter.js";
import type { ResolvedMetricsConfig } from "../observe/latency/metrics-config.js";
import type { Log } from "../observe/log/log.js";
import type { Tracing } from "../observe/trace/tracing.js";
import type { EvictionListener } from "../request/sequence-info.js";
import type { FindMember } from "../scheduler/ensemble/member.js";

import type { CallGraph } from "./call-graph.js";
import type { ExecutorFactory } from "./create-instances.js";

/** Everything that a model version is made from. */
export interface ModelVersionInit {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  /** Class names by output. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
  readonly createExecutor: ExecutorFactory;
  readonly clock: Clock;
  /** Finds the members of an ensemble. */
  readonly findMember: FindMember;
  /** Calls other models for callbacks. */
  readonly callModels: CallModels;
  /** Decides whose turn it is, over all models; undefined if any idle instance may run. */
  readonly rateLimiter?: RateLimiter | undefined;
  readonly hostPolicies?: HostPolicies | undefined;
  /** Graph of the models that wait for each other. */
  readonly calls: CallGraph;
  /** Cache of responses, for models that ask for it. */
  readonly responseCache?: ResponseCache | undefined;
  /** Number of requests before the first batch of the dynamic batcher: a hold for tests. */
  readonly holdUntil: number;
  /** Number of requests in the sequence batcher's backlog to wait for in addition. */
  readonly backlogHoldUntil: number;
  /** True if one batch may combine requests with different optional inputs. */
  readonly mixedInputs?: boolean | undefined;
  /** True if callbacks have to return ndarrays, without any conversion. */
  readonly strict?: boolean | undefined;
  /** Log that models write to, and registry of their own metrics. */
  readonly log: Log;
  readonly metrics: () => Registry;
  /** The models of the repository, for models that load others. */
  readonly control?: ModelControl | undefined;
  /** Decides which requests of this process are traced. */
  readonly tracing?: Tracing | undefined;
  /** Metrics of latency to record. */
  readonly metricsConfig: ResolvedMetricsConfig;
  /** Called for sequences that ended without an END. */
  readonly onSequenceEvict?: EvictionListener | undefined;
  /** Rules for batches of requests whose lengths differ. */
  readonly variableLength?: VariableLength | undefined;
  /** Initial states of sequences, for a model with implicit state: see `initialStates`. */
  readonly initialStates?: ReadonlyMap<string, Tensor> | undefined;
  /** Distinguishes models of the same name; empty unless namespaces are on. */
  readonly namespace?: string;
  /** Directory of the model, if it is from a repository. */
  readonly directory?: string | undefined;
  /** If true, the version stays LOADING after loading, until `publish`. */
  readonly held?: boolean;
}
