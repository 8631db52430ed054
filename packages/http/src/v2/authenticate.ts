import type { Authentication } from "@tritonjs/core/frontend";
import type { AccessGroup } from "@tritonjs/core/types";
import { headersOf, type V2Request } from "../exchange/request.js";
import { type ContentType, errorResponse, type V2Response } from "../exchange/response.js";

/**
 * Authenticates a request whose body has not been read.
 *
 * @param errorType content type of a refusal
 * @returns the refusal, or undefined if the request is allowed
 */
export async function authenticate(
  authentication: Authentication,
  request: V2Request,
  group: AccessGroup,
  errorType: ContentType,
): Promise<V2Response | undefined> {
  if (!authentication.guards(group)) return undefined;
  const { method, path, remoteAddress } = request;
  try {
    const headers = headersOf(request);
    await authentication.check({ transport: "http", method, path, group, headers, remoteAddress });
    return undefined;
  } catch (thrown) {
    const refusal = errorResponse(request, thrown, errorType);
    if (refusal.status !== 401) return refusal;
    return { ...refusal, headers: { ...refusal.headers, "www-authenticate": authentication.challenge } };
  }
}
