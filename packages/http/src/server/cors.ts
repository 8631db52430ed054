import { errorFor, type TritonError } from "@tritonjs/protocol";
import { firstHeader, type V2Request } from "../exchange/request.js";
import type { V2Response } from "../exchange/response.js";
import type { V2Handler } from "../routes/v2-handler.js";

/** Which pages of other origins browsers let use the server (CORS). */
export interface CorsOptions {
  /**
   * Origins of the pages: `true` for all, or a list of `https://app.example.com`. A regular expression must match the
   * whole origin.
   */
  readonly origins: true | readonly (string | RegExp)[];
  /** Methods that pages may use. @default GET, POST */
  readonly methods?: readonly string[];
  /** Headers that pages may send. @default all that a page asks for */
  readonly headers?: readonly string[];
  /** Headers of answers that pages may read. @default those of the protocol */
  readonly exposedHeaders?: readonly string[];
  /** Whether pages may send cookies and other credentials of the browser. Needs a list of origins. @default false */
  readonly credentials?: boolean;
  /** Seconds for which browsers remember the answer to a preflight request. @default the browser's, 5 s as a rule */
  readonly maxAgeSeconds?: number;
}

/** Headers of answers that clients of the protocol read. */
const PROTOCOL_HEADERS = ["inference-header-content-length", "content-encoding", "retry-after"];

/**
 * Lets browsers show the answers of a handler to pages of other origins. It answers preflight requests itself, before
 * authentication, because browsers send them without credentials.
 *
 * @throws TritonError INVALID_ARG for an origin that no browser sends, and for credentials of all origins.
 */
export function withCors(handler: V2Handler, cors: CorsOptions | undefined): V2Handler {
  if (cors === undefined) return handler;
  const allows = originRule(cors);
  const { methods = ["GET", "POST"], headers, exposedHeaders = PROTOCOL_HEADERS, maxAgeSeconds } = cors;
  const exposed = exposedHeaders.join(", ");
  const always: V2Response["headers"] = cors.origins === true ? {} : { vary: "Origin" };

  /** Headers of every answer to a request. */
  const grant = (request: V2Request): V2Response["headers"] => {
    const origin = firstHeader(request, "origin");
    if (origin === undefined || !allows(origin)) return always;
    return {
      ...always,
      "access-control-allow-origin": cors.origins === true ? "*" : origin,
      ...(cors.credentials && { "access-control-allow-credentials": "true" }),
    };
  };

  const preflight = (request: V2Request): V2Response => {
    const granted = grant(request);
    const asked = headers?.join(", ") ?? firstHeader(request, "access-control-request-headers");
    return {
      status: 200,
      headers: {
        ...granted,
        ...("access-control-allow-origin" in granted && {
          "access-control-allow-methods": methods.join(", "),
          ...(asked && { "access-control-allow-headers": asked }),
          ...(maxAgeSeconds !== undefined && { "access-control-max-age": String(maxAgeSeconds) }),
        }),
      },
      body: new Uint8Array(0),
    };
  };

  return async (request) => {
    if (isPreflight(request)) return preflight(request);
    const response = await handler(request);
    if (response === undefined) return undefined;
    const granted = grant(request);
    const shown = "access-control-allow-origin" in granted && exposed !== "";
    return {
      ...response,
      headers: {
        ...response.headers,
        ...granted,
        ...(shown && { "access-control-expose-headers": exposed }),
      },
    };
  };
}

function isPreflight(request: V2Request): boolean {
  return request.method === "OPTIONS" && firstHeader(request, "access-control-request-method") !== undefined;
}

/**
 * A function that says whether the options list an origin. To allow all origins is not to trust them: their pages may
 * not change the server.
 */
export function listedOrigins(cors: CorsOptions | undefined): ((origin: string) => boolean) | undefined {
  return cors === undefined || cors.origins === true ? undefined : originRule(cors);
}

function originRule({ origins, credentials }: CorsOptions): (origin: string) => boolean {
  if (origins === true) {
    if (credentials) {
      throw invalid(
        "cors.credentials: expected a list of origins, got origins: true, which lets every site act for its visitors",
      );
    }
    return () => true;
  }
  if (!Array.isArray(origins)) throw invalid(`cors.origins: expected true or a list, got ${String(origins)}`);
  const texts = new Set(origins.filter((origin) => typeof origin === "string").map(checkedOrigin));
  const patterns = origins
    .filter((origin) => origin instanceof RegExp)
    .map(({ source, flags }) => new RegExp(`^(?:${source})$`, flags.replace(/[gy]/g, "")));
  return (origin) => texts.has(origin) || patterns.some((pattern) => pattern.test(origin));
}

/** Browsers send `scheme://host:port` in lower case, without a path. */
function checkedOrigin(origin: string): string {
  if (origin === "null" || (URL.canParse(origin) && new URL(origin).origin === origin)) return origin;
  throw invalid(
    `cors.origins: expected an origin such as 'https://app.example.com', without a path, got '${origin}'`,
  );
}

function invalid(text: string): TritonError {
  return errorFor("INVALID_OPTION", text);
}
