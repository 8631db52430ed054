import { type DeadlineClass, InferenceRequest, readScalarOptions } from "@tritonjs/core/internal";
import type { ModelConfig } from "@tritonjs/protocol";
import { deadlineReader } from "@tritonjs/scheduling";
import type { SimulatedRequest } from "../simulate/simulate.js";

/** Requests with a time limit of one class: a priority level and a caller. */
export interface ClassFigures {
  readonly level: number;
  /** Empty for requests without a caller. */
  readonly caller: string;
  readonly requests: number;
  /** Requests that were answered within their limit. */
  readonly inTime: number;
  /** Requests that were answered later than that. */
  readonly late: number;
  /** Requests without an answer: refused, or ended when their time was over. */
  readonly refused: number;
  /** Numbers of lost requests by cause, as far as the recording or the prediction has them. */
  readonly causes: Readonly<Record<string, number>>;
}

/** Callers of a level that are reported by name. The others are reported together. */
const NAMED_CALLERS = 64;
const OTHER_CALLERS = "(others)";

/** The classes of the requests of a recording, and the limit of each request. */
export class RequestClasses {
  readonly #classes: { readonly level: number; readonly caller: string }[] = [];
  /** Place of each request in the classes. */
  readonly #places: number[];
  readonly #limitsMs: Float64Array;

  /** @param config has the limits of requests that brought none, if it has deadlines */
  constructor(requests: readonly SimulatedRequest[], config: ModelConfig | undefined) {
    const due = deadlineReader(config);
    this.#limitsMs = Float64Array.from(requests, (one) => due(requestOf(one)));
    const known = new Map<string, number>();
    this.#places = requests.map(({ priority = 0, caller = "" }) => {
      const own = known.get(`${priority} ${caller}`);
      if (own !== undefined) return own;
      const name =
        this.#classes.filter(({ level }) => level === priority).length < NAMED_CALLERS
          ? caller
          : OTHER_CALLERS;
      const key = `${priority} ${name}`;
      const place = known.get(key) ?? this.#classes.push({ level: priority, caller: name }) - 1;
      known.set(key, place);
      return place;
    });
  }

  /**
   * Counts what became of the requests, lowest level first. Classes without a limit are left out.
   *
   * @param latenciesMs of each request; NaN for one without an answer
   * @param causes numbers of lost requests of a class, by cause
   */
  count(
    latenciesMs: Float64Array,
    causes: (level: number, caller: string) => Readonly<Record<string, number>>,
  ): ClassFigures[] {
    const counts = this.#classes.map(() => ({ requests: 0, inTime: 0, late: 0, refused: 0 }));
    for (const [i, limitMs] of this.#limitsMs.entries()) {
      if (limitMs === Number.POSITIVE_INFINITY) continue;
      const count = counts[this.#places[i]!]!;
      const ms = latenciesMs[i]!;
      count.requests++;
      if (Number.isNaN(ms)) count.refused++;
      else if (ms <= limitMs) count.inTime++;
      else count.late++;
    }
    return this.#classes
      .map((one, i) => ({ ...one, ...counts[i]!, causes: causes(one.level, one.caller) }))
      .filter(({ requests }) => requests > 0)
      .sort((a, b) => a.level - b.level || (a.caller < b.caller ? -1 : 1));
  }
}

/** Numbers of lost requests of a class by cause, from what a simulated model has counted. */
export function causesOf(
  classes: readonly DeadlineClass[],
): (level: number, caller: string) => Readonly<Record<string, number>> {
  return (level, caller) => classes.find((one) => one.level === level && one.caller === caller)?.causes ?? {};
}

function requestOf(wanted: SimulatedRequest): InferenceRequest {
  const request = new InferenceRequest("", { inputs: new Map() });
  readScalarOptions(wanted, request);
  request.clientLimitMs = wanted.limitMs ?? 0;
  request.caller = wanted.caller ?? "";
  request.queueStart = 0;
  return request;
}
