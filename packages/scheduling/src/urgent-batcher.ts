import {
  type BatchedModel,
  type Batcher,
  type BatcherOptions,
  DynamicBatchScheduler,
  type InferenceRequest,
  type KnownLimits,
  type Scheduler,
  sequenceSlots,
} from "@tritonjs/core/extension";
import type { ModelConfig } from "@tritonjs/protocol";
import { defaultDynamicBatching } from "@tritonjs/protocol/config";
import { DeadlineBatching } from "./deadline-batching.js";
import { callerOf, FairShares, ShareLedger } from "./fair-shares.js";
import { LearnedTimes } from "./learned-times.js";
import {
  type BatcherSettings,
  type ShareOptions,
  schedulingSettings,
  settingsProblems,
  type Texts,
} from "./settings.js";
import { SlotDeadlines } from "./slot-deadlines.js";
import { dueOf, urgencyOf } from "./urgency.js";
import { UrgencyQueue } from "./urgency-queue.js";

/** Share of a latency target after which a batch waits no longer. Learnt times mostly end the wait earlier. */
const TARGET_WAIT = 0.5;

/** Parts of a batcher besides its parameters. */
export interface UrgentBatcherParts {
  readonly options?: Omit<BatcherOptions, "batchBy">;
  /** Names callers by a function, in place of the parameter. */
  readonly by?: ShareOptions["by"] | undefined;
  /** Accounts of callers that share all models of a server. */
  readonly ledger?: ShareLedger | undefined;
}

/**
 * The batcher of deadlines and shares: one queue in the order of deadlines, or in that in which each caller gets its share.
 * Its settings are parameters, so that the configuration of the model shows them, and can ask for them.
 */
export class UrgentBatcher implements Batcher {
  readonly options: Omit<BatcherOptions, "batchBy">;
  readonly limits: Omit<KnownLimits, "lateCause">;
  readonly settings: BatcherSettings;

  /** @param name name in messages */
  constructor(
    readonly name: string,
    readonly parameters: Texts,
    private readonly parts: UrgentBatcherParts = {},
  ) {
    const { options = {}, by } = parts;
    this.options = options;
    this.settings = schedulingSettings(parameters, by);
    const { limits, shares } = this.settings;
    const caller = typeof shares?.by === "string" ? shares.by : "caller";
    this.limits = {
      reads: { caller, limit: limits !== undefined },
      dueOf,
      callerOf: (request: InferenceRequest) =>
        urgencyOf(request)?.share?.account.name ?? callerOf(request, caller),
    };
  }

  /** The same with shares over all models. */
  sharedBy(shares: Texts, parts: UrgentBatcherParts): UrgentBatcher {
    return new UrgentBatcher(this.name, { ...this.parameters, ...shares }, { ...this.parts, ...parts });
  }

  problems(config: ModelConfig): readonly string[] {
    const problems = settingsProblems(this.parameters, config);
    if (this.settings.targetMs === undefined) return problems;
    for (const key of ["maxQueueDelayMicroseconds", "preferredBatchSize"] as const) {
      if (this.options[key] === undefined) continue;
      problems.push(
        `config.batcher.${key} and config.batcher.targetLatencyMs are both given: leave one of them out`,
      );
    }
    return problems;
  }

  open(model: BatchedModel): Scheduler {
    const { config, instances, clock, deadlines } = model;
    const { limits, targetMs, shares, isCommon } = this.settings;
    const batching = config.dynamicBatching ?? defaultDynamicBatching();
    const dynamicBatching =
      targetMs === undefined
        ? batching
        : { ...batching, preferredBatchSize: [], maxQueueDelayMicroseconds: 1000 * TARGET_WAIT * targetMs };
    // Without the dynamic batcher, each request is a batch.
    const maxBatchSize =
      config.dynamicBatching === undefined ? Math.min(1, config.maxBatchSize) : config.maxBatchSize;
    const ledger = isCommon ? (this.parts.ledger ?? new ShareLedger()) : undefined;
    const isShared = shares !== undefined && config.sequenceBatching === undefined;
    const fair = isShared ? new FairShares(shares, Math.max(1, maxBatchSize), ledger) : undefined;
    const batched = { ...model, config: { ...config, dynamicBatching, maxBatchSize } };
    return new DynamicBatchScheduler(batched, (_queue, look) => {
      const queue = new UrgencyQueue(dynamicBatching, deadlines, limits, () => clock.now(), look, fair);
      if (fair !== undefined) fair.headOrder = () => queue.headOrder();
      const maxRows = Math.max(1, config.maxBatchSize);
      const hasTarget = targetMs !== undefined;
      const parts = { queue, maxRows, instances, clock, limits: this.limits, shares: fair, hasTarget };
      return new DeadlineBatching(parts);
    });
  }

  openSlots({ config, instances }: BatchedModel): SlotDeadlines | undefined {
    const { limits } = this.settings;
    return limits && new SlotDeadlines(new LearnedTimes(instances, sequenceSlots(config)), limits);
  }
}
