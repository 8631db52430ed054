import { TritonError } from "@tritonjs/protocol";
import { ARRIVAL, BEGIN, ENTRY, type Tape, TapeReader } from "./tape.js";

// The dashboard loads this file alone, and reads recordings with it.
export { Tape } from "./tape.js";

/** A request of a recording. Times are milliseconds from its beginning. */
export interface RecordedRequest {
  /** Number in the order of arrival. */
  readonly number: number;
  /** Id that the client gave; empty for none. */
  readonly id: string;
  readonly model: string;
  readonly version: number;
  readonly rows: number;
  readonly priority: number;
  readonly caller: string;
  readonly arrivedMs: number;
  /** When the answer is due; null for a request without a limit of its own. */
  readonly dueMs: number | null;
  /** Number of its last batch; null if it ran in none. */
  batch: number | null;
  /** When it was answered or ended; null if it was open at the end of the recording. */
  endedMs: number | null;
  /** Empty for an answer, else the reason or the code of its error. */
  outcome: string;
  /** Why it was late, if the model has deadlines; empty if it was not, or nobody knows. */
  cause: string;
}

/** A batch of a recording. */
export interface RecordedBatch {
  readonly number: number;
  readonly model: string;
  readonly version: number;
  readonly instance: string;
  readonly cut: string;
  readonly rows: number;
  /** Numbers of its requests, in their order. */
  readonly requests: readonly number[];
  readonly startedMs: number;
  endedMs: number | null;
}

/** What happened in a recording. */
export interface Timeline {
  /** Wall time of its beginning, in milliseconds since 1970. */
  readonly beganAt: number;
  readonly durationMs: number;
  readonly requests: readonly RecordedRequest[];
  readonly batches: readonly RecordedBatch[];
}

/** Reads the requests and batches of a recording. */
export function timelineOf(tape: Tape): Timeline {
  const reader = new TapeReader(tape);
  const began = tape.length > 0 ? reader.time : 0;
  // A ring has dropped the requests and batches before these.
  const isRing = reader.kind === ENTRY.begin;
  const firstRequest = isRing ? reader.field(BEGIN.request) : 0;
  const firstBatch = isRing ? reader.field(BEGIN.batch) : 0;
  const requests: RecordedRequest[] = [];
  const batches: RecordedBatch[] = [];
  const instances = tape.models.map(({ instances }) => [...instances]);
  let last = began;
  for (; !reader.done; reader.next()) {
    const { time } = reader;
    const model = tape.models[reader.model];
    const atMs = time - began;
    last = Math.max(last, time);
    const first = reader.fields > 0 ? reader.field(0) : 0;
    const request = requests[first - firstRequest];
    const batch = batches[first - firstBatch];
    if (reader.kind === ENTRY.arrive && model !== undefined && requests.length === first - firstRequest) {
      requests.push(arrivalOf(reader, tape, model, requests.length, began));
    } else if (reader.kind === ENTRY.batch && model !== undefined && batches.length === first - firstBatch) {
      const numbers = Array.from(
        { length: reader.fields - 4 },
        (_, i) => reader.field(4 + i) - firstRequest,
      ).filter((number) => requests[number] !== undefined);
      for (const number of numbers) requests[number]!.batch = batches.length;
      batches.push({
        number: batches.length,
        ...{ model: model.name, version: model.version },
        instance: instances[reader.model]?.[reader.field(1)] ?? `instance ${reader.field(1)}`,
        cut: tape.textOf(reader.field(2)),
        rows: reader.field(3),
        requests: numbers,
        startedMs: atMs,
        endedMs: null,
      });
    } else if (reader.kind === ENTRY.ended && batch !== undefined) {
      batch.endedMs = atMs;
    } else if (reader.kind === ENTRY.join && model !== undefined) {
      instances[reader.model]![first] = tape.textOf(reader.field(2));
    } else if ((reader.kind === ENTRY.settled || reader.kind === ENTRY.refused) && request !== undefined) {
      request.endedMs = atMs;
      request.outcome = tape.textOf(reader.field(1));
    } else if (reader.kind === ENTRY.late && request !== undefined) {
      request.cause = tape.textOf(reader.field(1));
    }
  }
  return { beganAt: tape.about.beganAt, durationMs: last - began, requests, batches };
}

function arrivalOf(
  reader: TapeReader,
  tape: Tape,
  { name, version }: { readonly name: string; readonly version: number },
  number: number,
  began: number,
): RecordedRequest {
  const field = (key: keyof typeof ARRIVAL) => reader.field(ARRIVAL[key]);
  const arrived = field("queueStart");
  const limit = field("limitMs");
  const due = Math.min(field("deadline"), limit > 0 ? arrived + limit : Number.POSITIVE_INFINITY);
  return {
    number,
    id: tape.textOf(field("id")),
    model: name,
    version,
    rows: Math.max(1, field("batchSize")),
    priority: field("priority"),
    caller: tape.textOf(field("caller")),
    arrivedMs: arrived - began,
    dueMs: due < Number.POSITIVE_INFINITY ? due - began : null,
    batch: null,
    endedMs: null,
    outcome: "",
    cause: "",
  };
}

/** Why a request took as long as it did. */
export interface Explanation {
  readonly request: RecordedRequest;
  /** Milliseconds in the queue, and in its batch; null for what the recording does not have. */
  readonly queueMs: number | null;
  readonly computeMs: number | null;
  /** The batch that it ran in; null if it ran in none. */
  readonly batch: RecordedBatch | null;
  /** Requests of the same model that waited when it arrived. */
  readonly before: readonly RecordedRequest[];
  /** Requests that came later and ran earlier. */
  readonly overtookIt: readonly RecordedRequest[];
  /** Batches of the same model that ran while it waited, in order. */
  readonly ranMeanwhile: readonly RecordedBatch[];
  /** Requests that shared its batch. */
  readonly sharedItsBatch: readonly RecordedRequest[];
  readonly text: string;
}

/**
 * Explains one request of a recording: for whom it waited, and why it was late.
 *
 * @param request the id that the client gave, or the number in the order of arrival
 * @throws TritonError NOT_FOUND for a request that the recording does not have
 */
export function explainRequest(timeline: Timeline, request: string | number): Explanation {
  const { requests, batches } = timeline;
  const found =
    requests.find(({ id }) => id !== "" && id === String(request)) ??
    (/^\d+$/.test(String(request)) ? requests[Number(request)] : undefined);
  if (found === undefined) {
    const got = `'${request}'`;
    const expected = `the id of a request, or a number below ${requests.length}`;
    throw new TritonError("NOT_FOUND", `the recording has no request ${got}: expected ${expected}`);
  }
  const startOf = ({ batch }: RecordedRequest) =>
    batch === null ? null : (batches[batch]?.startedMs ?? null);
  const batch = found.batch === null ? null : (batches[found.batch] ?? null);
  const leftMs = batch?.startedMs ?? found.endedMs ?? timeline.durationMs;
  const own = requests.filter(
    (one) => one.model === found.model && one.version === found.version && one !== found,
  );
  const before = own.filter((one) => {
    const left = startOf(one) ?? one.endedMs ?? Number.POSITIVE_INFINITY;
    return one.number < found.number && left > found.arrivedMs;
  });
  const overtookIt = own.filter((one) => one.number > found.number && (startOf(one) ?? leftMs) < leftMs);
  const ranMeanwhile = batches.filter(
    (one) =>
      one.model === found.model &&
      one.version === found.version &&
      one !== batch &&
      one.startedMs < leftMs &&
      (one.endedMs ?? Number.POSITIVE_INFINITY) > found.arrivedMs,
  );
  const sharedItsBatch = (batch?.requests ?? []).flatMap((number) => {
    const one = requests[number];
    return one === undefined || one === found ? [] : [one];
  });
  const computeMs = batch === null || found.endedMs === null ? null : found.endedMs - batch.startedMs;
  const explanation = {
    request: found,
    queueMs: batch === null && found.endedMs === null ? null : leftMs - found.arrivedMs,
    computeMs,
    batch,
    before,
    overtookIt,
    ranMeanwhile,
    sharedItsBatch,
  };
  return { ...explanation, text: textOf(explanation) };
}

/** What the causes of late requests mean. */
const CAUSES: Readonly<Record<string, string>> = {
  queue: "it waited for others of its caller and priority",
  batch: "its batch, or the one that it waited for, was too large for it",
  other_class: "it waited for requests of other callers or priorities",
  other_model: "it waited for other models",
  overload: "more arrived than the instances can do",
  cold: "too little was known of the model's times",
  slow_model: "a batch took longer than expected",
};

/** Requests or batches that a text names at most. */
const MOST_NAMED = 8;

function textOf(it: Omit<Explanation, "text">): string {
  const { request, batch, queueMs, computeMs, before, overtookIt, ranMeanwhile, sharedItsBatch } = it;
  const at = (ms: number) => `${ms.toFixed(3)} ms`;
  const of = request.caller === "" ? "" : ` of ${request.caller}`;
  const lines = [
    `request ${nameOf(request)}${of} to model '${request.model}' version ${request.version}, ${request.rows} rows, priority ${request.priority}`,
    `  arrived at ${at(request.arrivedMs)}${request.dueMs === null ? "" : `, due at ${at(request.dueMs)}`}`,
  ];
  if (queueMs !== null)
    lines.push(`  waited ${at(queueMs)}, behind ${listOf(before.map(nameOf), "request")}`);
  if (ranMeanwhile.length > 0) {
    const list = listOf(
      ranMeanwhile.map(({ number, rows }) => `#${number} of ${rows} rows`),
      "batch",
    );
    lines.push(`  meanwhile ran ${list}`);
  }
  if (overtookIt.length > 0) lines.push(`  overtaken by ${listOf(overtookIt.map(nameOf), "request")}`);
  if (batch === null) lines.push("  ran in no batch");
  else {
    lines.push(
      `  ran in batch #${batch.number} at ${batch.instance} from ${at(batch.startedMs)} on, cut by ${batch.cut || "nothing"}`,
      `  shared it with ${listOf(sharedItsBatch.map(nameOf), "request")}`,
    );
    if (computeMs !== null) lines.push(`  computed for ${at(computeMs)}`);
  }
  const { endedMs, dueMs, outcome, cause } = request;
  if (endedMs === null) lines.push("  was open at the end of the recording");
  else {
    const late = dueMs !== null && endedMs > dueMs ? `, ${at(endedMs - dueMs)} too late` : "";
    lines.push(`  ${outcome === "" ? "answered" : `ended with ${outcome}`} at ${at(endedMs)}${late}`);
  }
  if (cause !== "") lines.push(`  cause: ${cause}: ${CAUSES[cause] ?? "unknown"}`);
  return `${lines.join("\n")}\n`;
}

function nameOf({ id, number }: RecordedRequest): string {
  return id === "" ? `#${number}` : `'${id}' (#${number})`;
}

function listOf(names: readonly string[], what: string): string {
  if (names.length === 0) return `no other ${what}`;
  const shown = names.slice(0, MOST_NAMED).join(", ");
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "";
  const plural = what === "batch" ? "batches" : `${what}s`;
  return `${names.length} ${names.length === 1 ? what : plural}: ${shown}${more}`;
}
