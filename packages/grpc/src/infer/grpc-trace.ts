import { TritonError } from "@tritonjs/protocol";
import { inferencePath } from "@tritonjs/protocol/grpc";
import type { RequestTrace, Tracing } from "@tritonjs/server";
import { statusFromError, statusName } from "../status-from-code.js";
import type { Call } from "../transport/method.js";

type SampledCall = Pick<Call, "headers" | "remoteAddress">;

export class GrpcTrace {
  #responded = false;
  #sending = false;
  #released = false;

  constructor(
    readonly request: RequestTrace,
    private readonly tracing: Tracing,
    /** Name of the call's status; undefined if the request is one of a stream. */
    private status: string | undefined,
  ) {}

  /** Notes that the call ends with this error, or without one. */
  answered(error?: unknown): void {
    this.status = error === undefined ? "OK" : statusName(statusFromError(TritonError.from(error)).code);
  }

  /** Notes that a response has come; the first of several counts. */
  responded(): void {
    if (this.#responded) return;
    this.#responded = true;
    this.#mark("INFER_RESPONSE_COMPLETE");
  }

  /** Notes that a message is about to be sent; the first of several counts. */
  sending(): void {
    if (this.#sending) return;
    this.#sending = true;
    this.#mark("GRPC_SEND_START");
  }

  sent(): void {
    if (this.#released) return;
    this.#released = true;
    this.#mark("GRPC_SEND_END");
    this.request.release(this.status);
  }

  #mark(name: string): void {
    this.request.mark(name, this.tracing.now());
  }
}

/**
 * Samples the requests of one source (a method or a stream), and measures how long the source waited for each.
 */
export class GrpcSampler {
  readonly #tracing: Tracing | undefined;
  #waitingSince: number;

  /** @param method of the inference service: of one request and one response, or of streams */
  constructor(
    tracing: Tracing | undefined,
    private readonly method: "ModelInfer" | "ModelStreamInfer",
  ) {
    this.#tracing = tracing;
    this.#waitingSince = tracing?.now() ?? 0;
  }

  /** Notes that a request has come. Returns its trace if the sampling rate selects it. */
  sample(modelName: string, { headers, remoteAddress }: SampledCall): GrpcTrace | undefined {
    const tracing = this.#tracing;
    if (tracing === undefined) return undefined;
    const start = this.#waitingSince;
    const end = tracing.now();
    this.#waitingSince = end;
    const trace = tracing.sample(modelName, {
      protocol: "grpc",
      startMs: start,
      header: (name) => headers.get(name),
      attributes: () => ({
        "rpc.system.name": "grpc",
        "rpc.method": inferencePath(this.method).slice(1),
        "user_agent.original": headers.get("user-agent"),
        "client.address": remoteAddress,
      }),
    });
    if (trace === undefined) return undefined;
    trace.mark("GRPC_WAITREAD_START", start);
    trace.mark("GRPC_WAITREAD_END", end);
    // A call that ends without an answer was cancelled.
    return new GrpcTrace(trace, tracing, this.method === "ModelInfer" ? "CANCELLED" : undefined);
  }
}
