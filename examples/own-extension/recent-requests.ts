import { TritonError } from "@tritonjs/core";
import {
  BaseTrace,
  type RequestTracer,
  type TracedBatch,
  type TracedRequest,
} from "@tritonjs/core/diagnostics";
import type { Extension, ManagementRoute } from "@tritonjs/core/extension";

/** Requests that are kept of each model. */
const KEPT = 10;

/** A request that is over, as the route shows it. */
interface RecentRequest {
  readonly id: string;
  readonly version: number;
  /** Requests of its batch; 0 if it did not run. */
  batchSize: number;
  durationMs: number;
  /** "OK", or the code of the error. */
  outcome: string;
}

/** An extension that keeps the last ten requests of each model, and serves them at `GET /v2/models/MODEL/recent`. */
export function recentRequests(): Extension {
  const recent = new Map<string, RecentRequest[]>();
  const keep = (modelName: string, request: RecentRequest) => {
    const requests = recent.get(modelName) ?? [];
    recent.set(modelName, [...requests, request].slice(-KEPT));
  };
  const tracer: RequestTracer = {
    always: true, // not only the requests that the trace settings select
    start: () => new RecentTrace(keep),
  };
  return {
    name: "recent-requests",
    attach({ registry }) {
      const route: ManagementRoute = {
        path: "models/{model}/recent",
        group: "statistics", // access control opens and closes it with the statistics
        get: {
          id: "recentRequests",
          summary: "The last requests of a model",
          run({ names: { model = "" } }) {
            if (registry.versions(model, "").length > 0) return recent.get(model) ?? [];
            throw new TritonError("NOT_FOUND", `recent requests: there is no model '${model}'`);
          },
        },
      };
      return { tracer, routes: [route] };
    },
  };
}

/** Follows one request, and keeps it when it is over. */
class RecentTrace extends BaseTrace {
  #modelName = "";
  #startMs = 0;
  #request: RecentRequest | undefined;

  constructor(private readonly keep: (modelName: string, request: RecentRequest) => void) {
    super();
  }

  /** Requests that this one causes, such as the steps of an ensemble, are requests of their models. */
  override child(): RecentTrace {
    return new RecentTrace(this.keep);
  }

  override begin(modelName: string, version: number, { id }: TracedRequest, atMs: number): void {
    this.#modelName = modelName;
    this.#startMs = atMs;
    this.#request = { id, version, batchSize: 0, durationMs: 0, outcome: "OK" };
  }

  override batch({ requestCount }: TracedBatch): void {
    if (this.#request !== undefined) this.#request.batchSize = requestCount;
  }

  override end(atMs: number, error?: TritonError): void {
    const request = this.#request;
    if (request === undefined) return; // the model has not accepted it
    this.#request = undefined;
    request.durationMs = Math.round(atMs - this.#startMs);
    if (error !== undefined) request.outcome = error.code;
    this.keep(this.#modelName, request);
  }
}
