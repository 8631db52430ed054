import type { InferenceService, RequestShare } from "@tritonjs/core/frontend";
import type { AccessGroup } from "@tritonjs/core/types";
import type { LabelLookup } from "../encode/infer-response.js";
import type { V2Request } from "../exchange/request.js";
import type { ContentType, V2Response } from "../exchange/response.js";
import type { HttpTrace } from "./http-trace.js";

/** Settings that all routes share. */
export interface RouteContext {
  readonly service: InferenceService;
  readonly maxInputSize: number;
  readonly labels: LabelLookup;
  /** Pattern of the headers that go to the model as parameters. */
  readonly forwardedHeaders: RegExp | undefined;
}

/** One request on its way through a route. */
export interface Exchange extends RouteContext {
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
  handle(exchange: Exchange): V2Response | Promise<V2Response>;
}

/** Pattern of the path of an action on a model; the empty action is the model itself. */
export function modelRoutePath(action: string): RegExp {
  const suffix = action === "" ? "" : `/${action}`;
  return new RegExp(`^/v2/models/(?<model>[^/]+)(?:/versions/(?<version>[0-9]+))?${suffix}$`);
}
