import { type AllowedHosts, HostRule } from "@tritonjs/core/frontend";
import { firstHeader } from "../exchange/request.js";
import { type PlainJson, toJsonBytes } from "../json/write-json.js";
import type { V2Handler } from "./v2-handler.js";

const JSON_TYPE = { "content-type": "application/json" };

/**
 * Refuses requests to hosts that are not allowed, of any path, while a server listens on loopback. Otherwise a page
 * whose name resolves to 127.0.0.1 could read everything that the machine of its visitor serves (DNS rebinding).
 *
 * @param loopback says whether the server listens only on loopback addresses
 * @param bodyOf makes the body of a refusal; Triton's form of an error unless given
 */
export function withAllowedHosts(
  handler: V2Handler,
  allowed: AllowedHosts | undefined,
  loopback: () => boolean,
  bodyOf: (message: string) => PlainJson = (error) => ({ error }),
): V2Handler {
  const hosts = new HostRule(allowed);
  return (request) => {
    const fault = loopback() ? hosts.fault(firstHeader(request, "host")) : undefined;
    return fault === undefined
      ? handler(request)
      : Promise.resolve({ status: 403, headers: JSON_TYPE, body: toJsonBytes(bodyOf(fault)) });
  };
}
