import type { InferBody, TrafficCase } from "../../support/metrics/traffic.js";
import type { Draft } from "../difference.js";
import {
  type AnyTraffic,
  CountsDraft,
  requestsOf,
  type Sent,
  type TrafficDifference,
} from "./counts-draft.js";

/** Requests whose client cancelled, and whether they ran at that time. */
function givenUp(
  recorded: TrafficCase | Draft<TrafficCase>,
): { readonly sent: Sent; readonly ran: boolean }[] {
  const BETWEEN_MS = 100;
  const free = new Map<string, number>();
  let now = 0;
  return requestsOf(recorded).flatMap((sent) => {
    const { step, model, times } = sent;
    const busy = free.get(model) ?? 0;
    const deadline = step.client_deadline_seconds;
    if (deadline !== undefined) return [{ sent, ran: busy <= now }];
    const seconds = Number((step.body as InferBody | undefined)?.inputs?.[0]?.data[0] ?? 0);
    for (let i = 0; i < times; i++) {
      free.set(model, Math.max(now, free.get(model) ?? 0) + seconds * 1000);
      now = step.background ? now + BETWEEN_MS : (free.get(model) as number);
    }
    return [];
  });
}

/** The recorded server counted the cancellation already: the request was still in the batcher's own queue. */
function isCounted({ metrics_after: lines, snapshots }: AnyTraffic): boolean {
  const stats = snapshots?.at(-1)?.["GET /v2/models/stats"]?.model_stats ?? [];
  const inMetrics = (lines ?? []).some((line) => /reason="CANCELED"[^}]*\} [1-9]/.test(line));
  return inMetrics || stats.some(({ inference_stats: { fail } }) => (fail?.count ?? 0) > 0);
}

export const cancelledInQueue: TrafficDifference = {
  rule: "cancelled-in-queue",
  applies: (recorded) => !isCounted(recorded) && givenUp(recorded).some(({ ran }) => !ran),
  amend(draft) {
    for (const { sent } of givenUp(draft).filter(({ ran }) => !ran)) {
      const counts = new CountsDraft(draft);
      cancel(counts, sent);
      counts.change(sent.model, { executions: -1 });
      counts.changePending(sent.model, -1, sent.place);
      const entry = counts.entry(sent.model);
      const batch = entry?.batch_stats.find(({ batch_size: size }) => size === sent.rows);
      if (batch !== undefined) batch.compute_infer.count--;
    }
  },
};

export const cancelledInExecution: TrafficDifference = {
  rule: "cancelled-in-execution",
  applies: (recorded) => !isCounted(recorded) && givenUp(recorded).some(({ ran }) => ran),
  amend(draft) {
    for (const { sent } of givenUp(draft).filter(({ ran }) => ran)) cancel(new CountsDraft(draft), sent);
  },
};

function cancel(counts: CountsDraft, { model, rows }: Sent): void {
  const fail = { reason: "CANCELED", count: 1 } as const;
  counts.change(model, { success: -1, fail, inferences: -rows, computed: -1 });
}
