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

/** What a model version is made of. */
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
  /** Decides whose turn it is, over all models; undefined when any idle instance may run. */
  readonly rateLimiter?: RateLimiter | undefined;
  readonly hostPolicies?: HostPolicies | undefined;
  /** Which models wait for which. */
  readonly calls: CallGraph;
  /** Keeps responses, for models that ask for it. */
  readonly responseCache?: ResponseCache | undefined;
  /** Requests that the dynamic batcher waits for before its first batch: a hold for tests. */
  readonly holdUntil: number;
  /** Requests that the sequence batcher waits for in its backlog in addition. */
  readonly backlogHoldUntil: number;
  /** Whether the model takes requests with other optional inputs in one batch. */
  readonly mixedInputs?: boolean | undefined;
  /** Whether callbacks have to return ndarrays of which nothing is converted. */
  readonly strict?: boolean | undefined;
  /** Where models write to, and the metrics that they may have of their own. */
  readonly log: Log;
  readonly metrics: () => Registry;
  /** The models of the repository, for models that load others. */
  readonly control?: ModelControl | undefined;
  /** Decides which requests of this process are traced. */
  readonly tracing?: Tracing | undefined;
  /** Which metrics of latency there are. */
  readonly metricsConfig: ResolvedMetricsConfig;
  /** Told of sequences that are over without an END. */
  readonly onSequenceEvict?: EvictionListener | undefined;
  /** Batches of requests whose lengths differ. */
  readonly variableLength?: VariableLength | undefined;
  /** What the sequences of a model with implicit state start with: see `initialStates`. */
  readonly initialStates?: ReadonlyMap<string, Tensor> | undefined;
  /** Tells models of one name apart; empty unless namespaces are on. */
  readonly namespace?: string;
  /** Directory of the model, when it comes from a repository. */
  readonly directory?: string | undefined;
  /** When true, the version stays LOADING once it is loaded, until `publish`. */
  readonly held?: boolean;
}
