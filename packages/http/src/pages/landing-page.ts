import type { WebPages } from "@tritonjs/core/frontend";
import { firstHeader, type V2Request } from "../exchange/request.js";
import type { V2Response } from "../exchange/response.js";
import type { V2Handler } from "../v2/v2-handler.js";

/** Points to pages that another frontend serves, at `/` in front of a handler. */
export function withLandingPage(handler: V2Handler, pages: WebPages): V2Handler {
  return (request) =>
    request.path === "/" && request.method === "GET"
      ? Promise.resolve(landingPage(request, pages))
      : handler(request);
}

function landingPage(request: V2Request, { servedAt, path }: WebPages): V2Response {
  const scheme = servedAt?.url.startsWith("https:") ? "https" : "http";
  const host = hostOf(firstHeader(request, "host"));
  const link = servedAt === undefined ? undefined : `${scheme}://${host}:${servedAt.port}${path}/`;
  const text = link === undefined ? "not open yet" : `<a href="${link}">${link}</a>`;
  const page = `<!doctype html><html lang="en"><title>tritonjs</title><p>tritonjs. The dashboard is at ${text}.</p></html>\n`;
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
  };
  return { status: 200, headers, body: Buffer.from(page) };
}

/** Name or address in a `Host` header, without the port. A header of other characters could carry markup. */
function hostOf(header: string | undefined): string {
  const host = /^(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/.exec(header ?? "");
  return host?.[1] ?? "localhost";
}
