import { firstHeader, type V2Request } from "../exchange/request.js";

/** The model and the version in a path. */
const MODEL = /^\/v2\/models\/[^/]+(\/versions\/[^/]+)?/;

/** Attributes of a request to a model, by OpenTelemetry's semantic conventions for servers of HTTP. */
export function httpAttributes(request: V2Request): Record<string, string | number | undefined> {
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
