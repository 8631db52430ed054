import type { Duration, ModelConfig, ModelStatisticsReport } from "@tritonjs/protocol";
import { stepOf } from "./http-server-view.js";
import {
  type ModelCounters,
  type ModelName,
  SERVER_STAGES,
  type ServerStage,
  type ServerView,
} from "./server-view.js";

type Awaitable<T> = T | Promise<T>;

/** The calls of a service in process, or of the gRPC client, which answer with the library's own types. */
export interface ReportingServer {
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
