import type { AccessGroup } from "@tritonjs/core/types";
import type { InferenceService, RequestShare, RequestTrace, Tracing } from "@tritonjs/server";
import type { HeaderPattern } from "@tritonjs/server/internal";
import { firstHeader, type V2Request } from "../exchange/request.js";
import type { ContentType, V2Response } from "../exchange/response.js";
import type { LabelLookup } from "../infer/infer-response.js";

/** One request on its way through a route. */
export interface HttpExchange {
  readonly service: InferenceService;
  readonly maxInputSize: number;
  readonly labels: LabelLookup;
  /** Pattern of the headers that go to the model as parameters. */
  readonly forwardedHeaders: HeaderPattern | undefined;
  readonly request: V2Request;
  /** Counts the body of the request until it is answered. */
  readonly memory: RequestShare;
  /** The model in the path; empty on routes without one. */
  readonly model: string;
  /** The version in the path; empty without one. */
  readonly version: string;
  /** The region of shared memory in the path; empty without one. */
  readonly region: string;
  /** The repository in the path; empty without one. */
  readonly repository: string;
  /** Content type of errors that are thrown from now on. */
  errorType: ContentType;
  /** Set when the request is traced. */
  trace: HttpTrace | undefined;
}

/** A route of the protocol. */
export interface Route {
  /** Matches the whole path as sent. Groups: `model`, `version`, `region`, `repository`. */
  readonly path: RegExp;
  readonly methods: readonly ("GET" | "POST")[];
  readonly group: AccessGroup;
  /** Content type of errors, 405 included. */
  readonly errorType: ContentType;
  handle(exchange: HttpExchange): V2Response | Promise<V2Response>;
}

/** Makes a route that only `GET` has. */
export function getRoute(
  path: RegExp,
  group: AccessGroup,
  handle: Route["handle"],
  errorType: ContentType = "application/json",
): Route {
  return { path, methods: ["GET"], group, errorType, handle };
}

/** Makes a route that only `POST` has. */
export function postRoute(
  path: RegExp,
  group: AccessGroup,
  handle: Route["handle"],
  errorType: ContentType = "application/json",
): Route {
  return { path, methods: ["POST"], group, errorType, handle };
}

/** Pattern of the path of an action on a model; the empty action is the model itself. */
export function modelRoutePath(action: string): RegExp {
  const suffix = action === "" ? "" : `/${action}`;
  return new RegExp(`^/v2/models/(?<model>[^/]+)(?:/versions/(?<version>[0-9]+))?${suffix}$`);
}

/** The trace of an HTTP request: the part that this frontend adds. */
export class HttpTrace {
  /** Status of the answer; undefined while there is none, and when the client has left. */
  status: number | undefined;

  constructor(
    readonly request: RequestTrace,
    private readonly tracing: Tracing,
  ) {}

  /** Notes that a response has come. */
  responded(): void {
    this.#mark("INFER_RESPONSE_COMPLETE");
  }

  /** Notes that the answer is about to be sent. The trace ends when the answer is sent or the client has left. */
  send(sender: V2Request): void {
    this.#mark("HTTP_SEND_START");
    sender.onSent(() => {
      this.#mark("HTTP_SEND_END");
      this.request.release(this.status);
    });
  }

  #mark(name: string): void {
    this.request.mark(name, this.tracing.now());
  }
}

/** Parts of an exchange that tracing uses. */
export interface TracedExchange {
  readonly service: Pick<InferenceService, "tracing">;
  readonly request: V2Request;
  readonly model: string;
  trace: HttpTrace | undefined;
}

/**
 * Traces a request whose body is complete, if the sampling rate selects it. Requests with an incomplete body are not
 * counted.
 *
 * @param startMs when the request began to arrive, on the clock of traces; undefined on a server without traces
 */
export function traceReceived(exchange: TracedExchange, startMs: number | undefined): void {
  const { tracing } = exchange.service;
  if (startMs === undefined || tracing === undefined) return;
  const { request } = exchange;
  const trace = tracing.sample(exchange.model, {
    protocol: "http",
    startMs,
    header: (name) => firstHeader(request, name),
    attributes: () => httpAttributes(request),
  });
  if (trace === undefined) return;
  trace.mark("HTTP_RECV_START", startMs);
  trace.mark("HTTP_RECV_END", tracing.now());
  exchange.trace = new HttpTrace(trace, tracing);
}

/** The model and the version in a path. */
const MODEL = /^\/v2\/models\/[^/]+(\/versions\/[^/]+)?/;

/** Attributes of a request to a model, by OpenTelemetry's semantic conventions for servers of HTTP. */
function httpAttributes(request: V2Request): Record<string, string | number | undefined> {
  const { method, path, scheme, remoteAddress } = request;
  const host = firstHeader(request, "host");
  return {
    "http.request.method": method,
    "http.route": path.replace(
      MODEL,
      (_, version?: string) => `/v2/models/{model}${version === undefined ? "" : "/versions/{version}"}`,
    ),
    "url.path": path,
    "url.scheme": scheme,
    "user_agent.original": firstHeader(request, "user-agent"),
    "client.address": remoteAddress,
    ...(host !== undefined && serverOf(`${scheme}://${host}`)),
  };
}

function serverOf(url: string): Record<string, string | number> {
  if (!URL.canParse(url)) return {};
  const { hostname, port } = new URL(url);
  return { "server.address": hostname, ...(port !== "" && { "server.port": Number(port) }) };
}
