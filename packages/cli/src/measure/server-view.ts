import type { InferenceServerClient } from "@tritonjs/client/http";
import type { Duration, ModelConfig, ModelStatisticsReport } from "@tritonjs/protocol";

/** Durations of the statistics extension, in the order of a request's way. */
export const SERVER_STAGES = [
  "success",
  "fail",
  "queue",
  "computeInput",
  "computeInfer",
  "computeOutput",
  "cacheHit",
  "cacheMiss",
] as const;

/** One stage of a request in the server. */
export type ServerStage = (typeof SERVER_STAGES)[number];

/** Counters of one model version at one time. */
export interface ModelCounters {
  readonly name: string;
  readonly version: string;
  readonly inferenceCount: number;
  readonly executionCount: number;
  readonly stages: Readonly<Record<ServerStage, Readonly<Duration>>>;
  /** Executions by their batch size. */
  readonly batches: ReadonlyMap<number, number>;
}

/** A model, and its version where one is told. */
export interface ModelName {
  readonly name: string;
  /** Empty for the latest version. */
  readonly version: string;
}

/** What a measurement asks a server. Each method throws `TritonError`. */
export interface ServerView {
  /** Protocol extensions of the server. */
  extensions(): Promise<readonly string[]>;
  /** The models of the steps of an ensemble; none for other models. */
  steps(model: ModelName): Promise<ModelName[]>;
  /** Counters of the ready versions of a model. */
  counters(model: ModelName): Promise<ModelCounters[]>;
  close?(): void;
}

type Awaitable<T> = T | Promise<T>;

/** The calls of a service in process, or of the gRPC client, which answer with the library's own types. */
interface ReportingServer {
  extensions(): Awaitable<readonly string[]>;
  modelConfig(name: string, version: string): Awaitable<ModelConfig>;
  statistics(name: string, version: string): Awaitable<readonly ModelStatisticsReport[]>;
  close?(): void;
}

/** Asks a server that answers with the library's own types. */
export class ReportServerView implements ServerView {
  readonly #server: ReportingServer;

  /** @param server is closed with the view */
  constructor(server: ReportingServer) {
    this.#server = server;
  }

  async extensions(): Promise<readonly string[]> {
    return this.#server.extensions();
  }

  async steps({ name, version }: ModelName): Promise<ModelName[]> {
    const { ensembleScheduling } = await this.#server.modelConfig(name, version);
    return (ensembleScheduling?.step ?? []).map((step) => stepOf(step.modelName, step.modelVersion));
  }

  async counters({ name, version }: ModelName): Promise<ModelCounters[]> {
    const reports = await this.#server.statistics(name, version);
    return reports.map((report) => ({
      name: report.name,
      version: String(report.version),
      inferenceCount: Number(report.inferenceCount ?? 0),
      executionCount: Number(report.executionCount ?? 0),
      stages: Object.fromEntries(
        SERVER_STAGES.map((stage) => [stage, plain(report.inferenceStats?.[stage])]),
      ) as Record<ServerStage, Duration>,
      batches: new Map(
        (report.batchStats ?? []).map(({ batchSize, computeInfer }) => [
          Number(batchSize),
          plain(computeInfer).count,
        ]),
      ),
    }));
  }

  close(): void {
    this.#server.close?.();
  }
}

/** Numbers of 64 bits may arrive as other types than numbers. */
function plain(duration: Duration | null | undefined): Duration {
  return { count: Number(duration?.count ?? 0), ns: Number(duration?.ns ?? 0) };
}

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
function stepOf(name: string, version: unknown): ModelName {
  const number = Number(version ?? -1);
  return { name, version: number > 0 ? String(number) : "" };
}
