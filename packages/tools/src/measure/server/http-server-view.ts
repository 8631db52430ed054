import type { InferenceServerClient } from "@tritonjs/client/http";
import type { Duration } from "@tritonjs/protocol";
import type { ModelCounters, ModelName, ServerView } from "./server-view.js";

/** Asks a server over HTTP. */
export class HttpServerView implements ServerView {
  readonly #client: InferenceServerClient;

  /** @param client is closed with the view */
  constructor(client: InferenceServerClient) {
    this.#client = client;
  }

  async extensions(): Promise<readonly string[]> {
    return (await this.#client.getServerMetadata()).extensions ?? [];
  }

  async steps({ name, version }: ModelName): Promise<ModelName[]> {
    const config = await this.#client.getModelConfig(name, optional(version));
    const { step = [] } = (config.ensemble_scheduling ?? {}) as { readonly step?: readonly JsonStep[] };
    return step.map((one) => stepOf(one.model_name, one.model_version));
  }

  async counters({ name, version }: ModelName): Promise<ModelCounters[]> {
    const { model_stats } = await this.#client.getInferenceStatistics(name, optional(version));
    return model_stats.map((model) => {
      const stage = (key: string): Duration => {
        const { count = 0, ns = 0 } = model.inference_stats?.[key] ?? {};
        return { count: Number(count), ns: Number(ns) };
      };
      return {
        name: model.name,
        version: String(model.version),
        inferenceCount: Number(model.inference_count ?? 0),
        executionCount: Number(model.execution_count ?? 0),
        stages: {
          success: stage("success"),
          fail: stage("fail"),
          queue: stage("queue"),
          computeInput: stage("compute_input"),
          computeInfer: stage("compute_infer"),
          computeOutput: stage("compute_output"),
          cacheHit: stage("cache_hit"),
          cacheMiss: stage("cache_miss"),
        },
        batches: new Map(
          (model.batch_stats ?? []).map(({ batch_size, compute_infer }) => [
            Number(batch_size),
            Number((compute_infer as Duration | undefined)?.count ?? 0),
          ]),
        ),
      };
    });
  }

  close(): void {
    this.#client.close();
  }
}

interface JsonStep {
  readonly model_name: string;
  readonly model_version?: unknown;
}

const optional = (version: string) => (version === "" ? {} : { modelVersion: version });

/** The version -1 of a step is the latest. */
export function stepOf(name: string, version: unknown): ModelName {
  const number = Number(version ?? -1);
  return { name, version: number > 0 ? String(number) : "" };
}
