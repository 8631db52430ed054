/*
 * `@tritonjs/scheduling`: batchers beyond Triton's: deadlines with latency targets, and fair shares.
 */

import type {
  Batcher,
  BatcherOptions,
  Extension,
  InferenceRequest,
  UnbatchedModel,
} from "@tritonjs/core/extension";
import type { ModelConfig } from "@tritonjs/protocol";
import { defaultDynamicBatching } from "@tritonjs/protocol/config";
import { ShareLedger } from "./fair-shares.js";
import {
  asksForBatcher,
  checkShares,
  type LimitOptions,
  PARAMETERS,
  type ShareOptions,
  schedulingSettings,
  settingTexts,
  textsOf,
} from "./settings.js";
import { deadlineOf } from "./urgency-queue.js";
import { UrgentBatcher } from "./urgent-batcher.js";

export { type LimitOptions, readWeights, type ShareOptions, type ShareRequest } from "./settings.js";

/** Options of {@link deadlines}, with those of Triton's batcher: priorities, limits of the queue, a delay, padding. */
export interface DeadlineOptions extends LimitOptions, Omit<BatcherOptions, "batchBy"> {
  /** Shares of callers: they decide about the order then. @default none: the earliest deadline is first */
  readonly shares?: ShareOptions;
}

/** Options of {@link fairShares}, with those of Triton's batcher. */
export interface FairShareOptions extends ShareOptions, Omit<BatcherOptions, "batchBy"> {}

/**
 * Batches by deadline: the earliest first, in batches that their tightest members allow. Requests that cannot be answered in
 * time are refused (UNAVAILABLE with `retryAfterMs`). The deadline of a request is that of its call, its `timeoutMs` or its
 * `timeout`, else the default of its caller, its priority level or the model. Priority levels do not order the queue.
 *
 * Faulty options fail `bind` with INVALID_ARG.
 *
 * @example
 * ```ts
 * triton.bind({ modelName: "m", inputs, outputs, inferFunc, config: { batcher: deadlines({ defaultMs: 50 }) } });
 * ```
 */
export function deadlines({
  defaultMs,
  levelMs,
  callerMs,
  targetLatencyMs,
  shares,
  ...options
}: DeadlineOptions = {}): Batcher {
  const limits = { defaultMs, levelMs, callerMs, targetLatencyMs } as LimitOptions;
  return new UrgentBatcher("deadlines", settingTexts(limits, shares), { options, by: shares?.by });
}

/**
 * Runs requests in an order in which each caller gets its share of the model's time, whatever the others send. A full queue
 * refuses the request that would run last. Faulty options fail `bind` with INVALID_ARG.
 *
 * @example
 * ```ts
 * const batcher = fairShares({ by: "x-tenant", weights: { gold: 3 } });
 * ```
 */
export function fairShares({ by, weights, ...options }: FairShareOptions): Batcher {
  const shares: ShareOptions = { by, ...(weights !== undefined && { weights }) };
  return new UrgentBatcher("fairShares", settingTexts(undefined, shares), { options, by });
}

/** Options of {@link scheduling}. */
export interface SchedulingOptions {
  /**
   * Shares of callers over all models: a caller is charged for the time that its requests take, whichever models they go
   * to. It holds for models without sequences, except those with shares of their own, a target latency or `batchBy`.
   * @default none
   */
  readonly shares?: ShareOptions;
}

/**
 * The extension that reads the parameters of configurations: `deadlines`, `target_latency_ms`, `shares_by` and so on. So
 * models of repositories get the batchers of this package, and callers can share all models of the server.
 *
 * @throws TritonError INVALID_ARG for faulty shares
 * @example
 * ```ts
 * const triton = new Triton({ extensions: [repository({ modelRepository: "models" }), scheduling()] });
 * ```
 */
export function scheduling({ shares }: SchedulingOptions = {}): Extension {
  if (shares !== undefined) checkShares(shares);
  const parameters = Object.fromEntries(PARAMETERS.map((name) => [name, "value" as const]));
  const asked = configuredBatchers();
  return {
    name: "scheduling",
    parameters,
    problems: (config) =>
      asked({ name: config.name, version: 1, config, isGrouped: false })?.problems?.(config) ?? [],
    attach: () => ({ batcher: batcherOf(shares, new ShareLedger()) }),
  };
}

/** The batchers that configurations ask for, with one set of accounts: for `replayScheduling`. */
export function configuredBatchers(): (model: UnbatchedModel) => Batcher | undefined {
  return batcherOf(undefined, new ShareLedger());
}

/**
 * Returns when the answer to a request is due, in milliseconds on the clock of its arrival, by the limits of a configuration;
 * infinite for a request without a limit.
 *
 * @param config undefined for no defaults
 */
export function deadlineReader(config: ModelConfig | undefined): (request: InferenceRequest) => number {
  const batching = config?.dynamicBatching ?? defaultDynamicBatching();
  const limits = config && schedulingSettings(textsOf(config)).limits;
  return (request) => deadlineOf(request, batching, limits);
}

function batcherOf(
  shares: ShareOptions | undefined,
  ledger: ShareLedger,
): (model: UnbatchedModel) => Batcher | undefined {
  return ({ config, isGrouped, batcher: given }) => {
    const texts = textsOf(config);
    const asked = asksForBatcher(texts) ? new UrgentBatcher("deadlines", texts, { ledger }) : undefined;
    const own = given instanceof UrgentBatcher ? given : asked;
    const isEnsemble = config.ensembleScheduling !== undefined;
    if (isEnsemble || (config.sequenceBatching !== undefined && own?.settings.limits === undefined))
      return undefined;
    const hasOrder = own?.settings.shares !== undefined || own?.settings.targetMs !== undefined;
    if (shares === undefined || isGrouped || hasOrder || config.sequenceBatching !== undefined) return own;
    const common = settingTexts(undefined, shares, true);
    if (own !== undefined) return own.sharedBy(common, { by: shares.by, ledger });
    return given === undefined
      ? new UrgentBatcher("fairShares", common, { by: shares.by, ledger })
      : undefined;
  };
}
