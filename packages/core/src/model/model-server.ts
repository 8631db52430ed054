import { errorFor, type ModelConfig, type Tensor, TritonError } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import type { GuardedCache } from "../cache/response-cache.js";
import type { CallModels } from "../callback/infer-func.js";
import type { Gpus } from "../config/gpus.js";
import type { Executor, ExecutorContext, ModelControl } from "../instance/backend.js";
import type { RateLimiter } from "../instance/rate-limiter.js";
import type { Log } from "../observe/log.js";
import type { ResolvedMetricsConfig } from "../observe/metric-families.js";
import type { Tracing } from "../observe/tracing.js";
import type { EvictionListener } from "../request-info.js";
import type { AroundScheduling } from "../scheduler/around-scheduling.js";
import type { Batcher } from "../scheduler/batcher.js";
import type { VariableLength } from "../scheduler/dynamic/grouping-scheduler.js";
import type { FindMember } from "../scheduler/ensemble/ensemble-steps.js";
import type { Clock } from "../system/clock.js";
import type { HostPolicies } from "../system/host-policy.js";
import type { Residence, TenantModel } from "./residence.js";

export type ExecutorFactory = (context: ExecutorContext) => Executor;

/** Ensembles have no instances. */
export const noExecutor: ExecutorFactory = ({ info }) => {
  throw new TritonError(
    "INTERNAL",
    `cannot create an instance of ensemble '${info.modelName}': only its steps have instances`,
  );
};

/** One version of a model, as a program binds it or the repository reads it. */
export interface ModelPlan {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly labels: ReadonlyMap<string, readonly string[]>;
  readonly createExecutor: ExecutorFactory;
  /** Lists problems with instance groups that would replace those of a bound model. */
  readonly instanceProblems?: (config: ModelConfig) => readonly string[];
  /** True if one batch may combine requests with different optional inputs. */
  readonly mixedInputs?: boolean | undefined;
  /** True if callbacks have to return ndarrays, without any conversion. */
  readonly strict?: boolean | undefined;
  readonly onSequenceEvict?: EvictionListener | undefined;
  readonly variableLength?: VariableLength | undefined;
  /** Decides about the order and the batches of the requests. @default Triton's batcher, as the configuration says */
  readonly batcher?: Batcher | undefined;
  /**
   * Initial states of sequences, for a model with implicit state.
   * @default the initial states of the configuration
   */
  readonly initialStates?: ReadonlyMap<string, Tensor> | undefined;
  /** Distinguishes models of the same name; empty unless namespaces are on. */
  readonly namespace?: string;
  readonly directory?: string | undefined;
  /** If true, the version stays LOADING after loading, until `publish`. */
  readonly held?: boolean;
  /** If true, the version is in memory before it serves, whatever the server's options say. */
  readonly loadsNow?: boolean;
}

export interface ModelServer {
  readonly clock: Clock;
  readonly findMember: FindMember;
  readonly callModels: CallModels;
  readonly calls: CallGraph;
  /** Decides whose turn it is, over all models; undefined if any idle instance may run. */
  readonly rateLimiter?: RateLimiter | undefined;
  readonly hostPolicies: HostPolicies;
  readonly responseCache?: GuardedCache | undefined;
  /** Number of requests before the first batch of the dynamic batcher: a hold for tests. */
  readonly holdUntil: number;
  /** Number of requests in the sequence batcher's backlog to wait for in addition. */
  readonly backlogHoldUntil: number;
  readonly log: Log;
  readonly gpus?: Gpus | undefined;
  readonly metrics: () => Registry;
  readonly control?: ModelControl | undefined;
  /** Decides which requests of this process are traced. */
  readonly tracing?: Tracing | undefined;
  readonly metricsConfig: ResolvedMetricsConfig;
  /** Adds the settings of the server to a plan by which a model changes. @default none */
  adapt?(plan: ModelPlan): ModelPlan;
  /** Gives a version its place in memory; undefined for one that is always there. */
  admit?(model: TenantModel): Residence | undefined;
  /** Stands around the scheduling of a version, or of its next configuration; undefined for nothing. */
  around?(plan: ModelPlan): AroundScheduling | undefined;
}

export interface Callee {
  /** `name/version`. */
  readonly key: string;
  /** False if the call would have to wait for other work of the model. */
  readonly hasRoom: boolean;
  /** False if a busy instance holds a resource that the call would wait for. */
  readonly mayCallItself: boolean;
}

/** Most occurrences of one model in a chain of calls, which stops endless recursion. */
const MAX_LEVELS = 32;

/**
 * Graph of the models that wait for each other. An instance that waits for another model does nothing else, so models
 * that wait for each other in a circle would wait forever. A call that would close such a circle is refused, unless
 * another instance is idle.
 */
export class CallGraph {
  /** Calls in flight: caller, then callee. */
  readonly #underWay = new Map<string, Map<string, number>>();

  /**
   * Records a call.
   *
   * @param callers models that work on the request, outermost first
   * @returns function to call when the call is over
   * @throws TritonError INTERNAL if the model already works on the request and has no room, UNAVAILABLE if it has no
   * room and waits for the caller itself.
   */
  enter(callers: readonly string[], { key, hasRoom, mayCallItself }: Callee): () => void {
    const levels = callers.filter((caller) => caller === key).length;
    if (levels > 0 && !(hasRoom && mayCallItself && levels < MAX_LEVELS)) {
      const path = [...callers, key].map((model) => `'${model}'`).join(" -> ");
      throw errorFor("CIRCULAR_CALL", `circular call of models, which could wait forever: ${path}`);
    }
    const caller = callers.at(-1)!;
    if (!hasRoom && this.#waits(key, caller, new Set())) {
      throw errorFor(
        "MODEL_BUSY",
        `model '${caller}' cannot call model '${key}', which is busy and waits for '${caller}': try again, or add instances`,
      );
    }
    this.#count(caller, key, 1);
    return () => this.#count(caller, key, -1);
  }

  #waits(from: string, target: string, seen: Set<string>): boolean {
    if (from === target) return true;
    seen.add(from);
    const callees = [...(this.#underWay.get(from)?.keys() ?? [])];
    return callees.some((callee) => !seen.has(callee) && this.#waits(callee, target, seen));
  }

  #count(caller: string, callee: string, change: number): void {
    const callees = this.#underWay.get(caller) ?? new Map<string, number>();
    const count = (callees.get(callee) ?? 0) + change;
    if (count > 0) callees.set(callee, count);
    else callees.delete(callee);
    if (callees.size > 0) this.#underWay.set(caller, callees);
    else this.#underWay.delete(caller);
  }
}
