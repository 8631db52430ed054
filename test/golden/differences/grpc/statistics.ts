import type { UnaryResult } from "../../support/grpc/client.js";
import { type GrpcCase, modelsOf } from "../../support/grpc/grpc-case.js";
import type { Models } from "../../support/served-models.js";
import type { Draft } from "../difference.js";
import type { GrpcDifference } from "./grpc-draft.js";

interface Count {
  count?: string;
  ns?: string;
}

interface Entry {
  name: string;
  inference_count?: string;
  execution_count?: string;
  last_inference?: string;
  inference_stats?: Record<string, Count>;
  response_stats?: Record<string, Record<string, Count>>;
  batch_stats?: unknown;
}

function entries(message: unknown): Entry[] {
  const stats = (message as { model_stats?: Entry[] } | null | undefined)?.model_stats ?? [];
  return stats.filter((entry) => entry.inference_stats !== undefined);
}

const EVENTS = ["success", "queue", "compute_input", "compute_infer", "compute_output"] as const;

/** Calls before a statistics call whose deadline passed while the model ran. */
function givenUpBefore(
  cases: readonly GrpcCase[],
  recorded: GrpcCase | Draft<GrpcCase>,
  model: string,
): number {
  return cases
    .slice(
      0,
      cases.findIndex(({ id }) => id === recorded.id),
    )
    .filter((one) => one.group === recorded.group && one.request?.model_name === model)
    .filter(({ status }) => status?.code === "DEADLINE_EXCEEDED" || status?.code === "CANCELLED").length;
}

function cancelledInExecution(cases: readonly GrpcCase[]): GrpcDifference {
  const found = (recorded: GrpcCase | Draft<GrpcCase>) =>
    entries(recorded.response)
      .map((entry) => ({ entry, count: givenUpBefore(cases, recorded, entry.name) }))
      .filter(({ count, entry }) => count > 0 && entry.inference_stats?.fail?.count === undefined);
  return {
    rule: "cancelled-in-execution",
    applies: (recorded) => recorded.rpc === "ModelStatistics" && found(recorded).length > 0,
    amend(draft) {
      for (const { entry, count } of found(draft)) {
        const stats = entry.inference_stats as Record<string, Count>;
        entry.inference_count = `${Number(entry.inference_count) - count}`;
        for (const event of EVENTS) (stats[event] as Count).count = `${Number(stats[event]?.count) - count}`;
        stats.fail = { count: `${count}`, ns: "<ANY>" };
      }
    },
  };
}

/** The counts of the single responses of a decoupled model, and of its requests. */
function responseStatistics(models: Models, cases: readonly GrpcCase[]): GrpcDifference {
  const found = (recorded: GrpcCase | Draft<GrpcCase>) =>
    entries(recorded.response).filter(
      (entry) =>
        models.get(entry.name)?.features.has("decoupled") === true &&
        cases.some(
          ({ rpc, group, ...one }) =>
            rpc === "ModelStreamInfer" &&
            group === recorded.group &&
            modelsOf({ rpc, ...one } as GrpcCase).includes(entry.name),
        ),
    );
  return {
    rule: "response-statistics",
    applies: (recorded) => recorded.rpc === "ModelStatistics" && found(recorded).length > 0,
    amend(draft, got) {
      for (const entry of found(draft)) {
        const came = entries((got as UnaryResult).response).find(({ name }) => name === entry.name) as Entry;
        const requests = sentBefore(cases, draft, entry.name);
        check(came, requests);
        Object.assign(entry, structuredClone(came));
      }
    },
  };
}

/** The number of requests that a model got in the previous group. */
function sentBefore(cases: readonly GrpcCase[], recorded: Draft<GrpcCase>, model: string): number {
  return cases
    .slice(
      0,
      cases.findIndex(({ id }) => id === recorded.id),
    )
    .filter(({ group }) => group === recorded.group)
    .flatMap(({ events = [] }) => events)
    .filter(({ send }) => send?.model_name === model).length;
}

/** @throws Error if the counts do not follow from the number of requests */
function check(
  { inference_count: inferences, inference_stats: stats = {}, response_stats: responses = {} }: Entry,
  requests: number,
): void {
  const count = (value: Count | undefined) => Number(value?.count ?? 0);
  const fault = (what: string) => {
    throw new Error(`statistics: ${what} does not follow from ${requests} requests`);
  };
  if (Number(inferences ?? 0) !== count(stats.success)) fault("inference_count");
  if (count(stats.success) + count(stats.fail) !== requests) fault("success and fail");
  let before = requests;
  for (const [index, events] of Object.entries(responses).sort(([a], [b]) => Number(a) - Number(b))) {
    const all =
      count(events.success) + count(events.fail) + count(events.empty_response) + count(events.cancel);
    if (count(events.compute_infer) !== all) fault(`compute_infer of response ${index}`);
    if (count(events.compute_output) !== count(events.success)) fault(`compute_output of response ${index}`);
    if (all === 0 || all > before) fault(`response ${index}`);
    before = all;
  }
  if (count(responses["0"]?.compute_infer) !== requests) fault("response 0");
}

/** Rules about statistics. */
export function statisticsRules(models: Models, cases: readonly GrpcCase[]): readonly GrpcDifference[] {
  return [cancelledInExecution(cases), responseStatistics(models, cases)];
}
