import type { HttpCase } from "../../support/http/http-case.js";
import type { Draft } from "../difference.js";
import {
  type HttpDifference,
  modelOf,
  recordedError,
  type StepDraft,
  sentText,
  steps,
} from "./http-draft.js";

interface Counts {
  count: number;
}

interface StatisticsBody {
  readonly model_stats: {
    name: string;
    inference_count: number;
    inference_stats: Record<string, Counts>;
    response_stats: Record<string, Record<string, { count: number; ns: string | number }>>;
  }[];
}

function statisticsOf({ response }: StepDraft): StatisticsBody["model_stats"] {
  const body = response.body_json_masked as StatisticsBody | undefined;
  if (!Array.isArray(body?.model_stats)) return [];
  return body.model_stats.filter((entry) => entry.inference_stats !== undefined);
}

/** Steps before a statistics step in which a model answered with an error of its own. */
function failedBefore(recorded: HttpCase | Draft<HttpCase>, place: number, model: string): StepDraft[] {
  return steps(recorded)
    .slice(0, place)
    .filter((step) => modelOf(step) === model && /\/infer$/.test(step.request.path))
    .filter(
      (step) =>
        (step.response.status ?? 0) >= 400 &&
        !/inference input|unexpected|expected/.test(recordedError(step) ?? ""),
    );
}

function withStatistics(recorded: HttpCase | Draft<HttpCase>) {
  return steps(recorded).flatMap((step, place) =>
    statisticsOf(step).map((entry) => ({ entry, place, failed: failedBefore(recorded, place, entry.name) })),
  );
}

const failedRequests: HttpDifference = {
  rule: "failed-requests",
  applies: (recorded) => withStatistics(recorded).some(({ failed }) => failed.length > 0),
  amend(draft) {
    for (const { entry, failed } of withStatistics(draft)) {
      for (const step of failed) {
        const [input] = JSON.parse(sentText(step)).inputs as { shape: number[] }[];
        entry.inference_count -= input?.shape[0] ?? 1;
        for (const event of ["success", "queue", "compute_input", "compute_infer", "compute_output"]) {
          (entry.inference_stats[event] as Counts).count--;
        }
        (entry.inference_stats.fail as Counts).count++;
      }
    }
  },
};

/** The number of events of each stream of a model before a statistics step. */
function streamsBefore(recorded: HttpCase | Draft<HttpCase>, place: number, model: string): string[][] {
  return steps(recorded)
    .slice(0, place)
    .filter((step) => modelOf(step) === model && /\/generate_stream$/.test(step.request.path))
    .map(({ response }) => (response.body_text ?? "").split("\n\n").slice(0, -1));
}

const responseStatistics: HttpDifference = {
  rule: "response-statistics",
  applies: (recorded) =>
    withStatistics(recorded).some(
      ({ entry, place }) =>
        Object.keys(entry.response_stats ?? {}).length === 0 &&
        streamsBefore(recorded, place, entry.name).length > 0,
    ),
  amend(draft) {
    for (const { entry, place } of withStatistics(draft)) {
      const streams = streamsBefore(draft, place, entry.name);
      if (streams.length === 0) continue;
      const longest = Math.max(...streams.map((events) => events.length));
      for (let i = 0; i < longest; i++) {
        const events = streams.flatMap((stream) => stream[i] ?? []);
        const failed = events.filter((event) => event.startsWith('data: {"error":')).length;
        const counts = {
          compute_infer: events.length,
          compute_output: events.length - failed,
          success: events.length - failed,
          fail: failed,
          empty_response: 0,
          cancel: 0,
        };
        entry.response_stats[i] = Object.fromEntries(
          Object.entries(counts).map(([event, count]) => [event, { count, ns: "<ANY>" }]),
        );
      }
    }
  },
};

/** Rules about the counts in the statistics. */
export const statisticsRules: readonly HttpDifference[] = [failedRequests, responseStatistics];
