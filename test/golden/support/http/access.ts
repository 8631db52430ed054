import type { HttpCase, RecordedRequest } from "./http-case.js";
import type { HttpResponse } from "./parse-response.js";

/** Secret of the replayed servers. */
export const ACCESS_TOKEN = "golden-secret";

/** Groups that need the token by default: those that change the server or describe more than its models. */
const RESTRICTED =
  /^\/v2\/((system|cuda)sharedmemory|repository|logging|trace\/|models\/(.*\/)?(stats|trace\/setting)$)/;

/**
 * True for a request that the server rejects without the token: servers with their own restrictions have no others.
 */
export function needsToken(
  { server_flags: flags = [] }: Pick<HttpCase, "server_flags">,
  { path, port }: RecordedRequest,
): boolean {
  const own = flags.some((flag) => flag.startsWith("--http-restricted-api="));
  return !own && port === undefined && RESTRICTED.test(path.replace(/\?.*$/, ""));
}

export function withToken(request: RecordedRequest): RecordedRequest {
  return { ...request, headers: { ...request.headers, "triton-access-token": ACCESS_TOKEN } };
}

/** Lists how the answer to a request without the token differs from the expected rejection. */
export function compareRefusal({ method, path }: RecordedRequest, got: HttpResponse | undefined): string[] {
  const text = JSON.stringify({ error: "This API is restricted, expecting header 'triton-access-token'" });
  const same =
    got?.status === 403 && got.headers.get("content-type") === "text/plain" && got.body.toString() === text;
  return same ? [] : [`${method} ${path} without the token: got ${got?.status} ${got?.body}`];
}
