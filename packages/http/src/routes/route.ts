import type { InferenceService, RequestShare } from "@tritonjs/core/frontend";
import type { EndpointGroup } from "@tritonjs/core/types";
import type { LabelLookup } from "../encode/infer-response.js";
import type { V2Request } from "../exchange/request.js";
import type { ContentType, V2Response } from "../exchange/response.js";
import type { HttpTrace } from "./http-trace.js";

/** What all routes need to know. */
export interface RouteContext {
  readonly service: InferenceService;
  readonly maxInputSize: number;
  readonly labels: LabelLookup;
  /** Names of headers that go to the model as parameters. */
  readonly forwardedHeaders: RegExp | undefined;
}

/** One request on its way through a route. */
export interface Exchange extends RouteContext {
  readonly request: V2Request;
  /** Counts the body of the request until it is answered. */
  readonly memory: RequestShare;
  /** The model that the path names; empty on routes that name none. */
  readonly model: string;
  /** The version that the path names; empty for none. */
  readonly version: string;
  /** The region of shared memory that the path names; empty for none. */
  readonly region: string;
  /** The repository that the path names; empty for none. */
  readonly repository: string;
  /** Content type of an error that is thrown from now on. */
  errorType: ContentType;
  /** Set when the request turns out to be traced. */
  trace: HttpTrace | undefined;
}

/** A route of the protocol. */
export interface Route {
  /** Matches the whole path as it was sent. Groups: `model`, `version`, `region`, `repository`. */
  readonly path: RegExp;
  readonly methods: readonly ("GET" | "POST")[];
  readonly group: EndpointGroup;
  /** Content type of errors, also of 405. */
  readonly errorType: ContentType;
  handle(exchange: Exchange): V2Response | Promise<V2Response>;
}

/** The path of an action on a model; the empty action is the model itself. */
export function modelRoutePath(action: string): RegExp {
  const suffix = action === "" ? "" : `/${action}`;
  return new RegExp(`^/v2/models/(?<model>[^/]+)(?:/versions/(?<version>[0-9]+))?${suffix}$`);
}
