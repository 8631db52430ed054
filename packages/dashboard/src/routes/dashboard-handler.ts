import type { InferenceService, ServerInspector } from "@tritonjs/core/frontend";
import { fetchHandler } from "@tritonjs/http/fetch";
import { TritonError } from "@tritonjs/protocol";
import { pageFile, SECURITY_HEADERS } from "../page/page-files.js";
import { Viewers } from "../stream/viewers.js";
import { PageAccess } from "./access.js";
import { errorAnswer, faultAnswer, jsonAnswer } from "./answers.js";
import type { DashboardOptions } from "./dashboard-options.js";

/** Default of the option `intervalMs`: a person reads no faster. */
const INTERVAL_MS = 1000;

/** Largest number of instances that a change may ask for: a typing error must not start thousands of threads. */
const MOST_INSTANCES = 256;

/** Largest body of a change. */
const MOST_BODY_BYTES = 1024;

/** Makes the handler of all paths of the dashboard. */
export function dashboardHandler(
  service: InferenceService,
  options: DashboardOptions & { readonly path: string },
): (request: Request) => Promise<Response> {
  const { inspector } = service;
  if (inspector === undefined) {
    throw new TritonError(
      "UNSUPPORTED",
      "the dashboard needs a service with an inspector, such as triton.service",
    );
  }
  const { path, intervalMs = INTERVAL_MS, configuration = {} } = options;
  const restrictions = options.restrictions ?? service.restrictions;
  const access = new PageAccess(service, restrictions);
  const viewers = new Viewers(service, inspector, intervalMs);
  const v2 = fetchHandler({ service }, { prefix: path, restrictions });
  service.mount?.({ drain: () => viewers.close(), end: () => {} });
  return async (request) => {
    const at = new URL(request.url).pathname.slice(path.length);
    if (request.method === "GET") {
      // Relative, because a proxy may show the page under another path.
      if (at === "") return redirect(`.${path.slice(path.lastIndexOf("/"))}/`);
      const file = await pageFile(at === "/" ? "index.html" : at.replace(/^\/assets\//, ""));
      if (file !== undefined) return file;
    }
    const foreign = access.foreign(request);
    if (foreign !== undefined) return foreign;
    if (at.startsWith("/v2/") || at === "/v2") return v2(request);
    if (!at.startsWith("/api/")) return faultAnswer(404, "Not Found");
    const refusal = access.refusal(request);
    if (refusal !== undefined) return refusal;
    const [, , action, ...names] = at.split("/").map(decode);
    const [name = "", version = ""] = names;
    if (request.method === "GET" && action === "info") {
      return jsonAnswer(200, infoOf(service, inspector, configuration));
    }
    if (request.method === "GET" && action === "events") {
      return eventsAnswer(viewers.open(name === "" ? undefined : { name, version }, request.signal));
    }
    if (request.method === "POST" && action === "instances" && name !== "") {
      return changeInstances(inspector, name, version, request);
    }
    return faultAnswer(404, "Not Found");
  };
}

/** What does not change while the page is open. */
function infoOf(
  service: InferenceService,
  inspector: ServerInspector,
  configuration: Readonly<Record<string, string>>,
): object {
  return {
    server: service.serverMetadata(),
    node: process.version,
    modelControlMode: inspector.modelControlMode,
    log: service.log.settings,
    configuration,
  };
}

function eventsAnswer(body: ReadableStream<Uint8Array>): Response {
  const headers = {
    ...SECURITY_HEADERS,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    // Asks nginx not to collect the events.
    "x-accel-buffering": "no",
  };
  return new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>, { headers });
}

async function changeInstances(
  inspector: ServerInspector,
  name: string,
  version: string,
  request: Request,
): Promise<Response> {
  const text = await request.text();
  const count = text.length > MOST_BODY_BYTES ? undefined : countOf(text);
  if (count === undefined) {
    return faultAnswer(
      400,
      `instances of model '${name}': expected {"count": <integer from 1 to ${MOST_INSTANCES}>}`,
    );
  }
  try {
    await inspector.changeInstances(name, version, count);
    return jsonAnswer(200, { count });
  } catch (error) {
    return errorAnswer(error);
  }
}

function countOf(text: string): number | undefined {
  try {
    const { count } = JSON.parse(text) as { count?: unknown };
    const isCount = Number.isInteger(count) && (count as number) > 0 && (count as number) <= MOST_INSTANCES;
    return isCount ? (count as number) : undefined;
  } catch {
    return undefined;
  }
}

function redirect(location: string): Response {
  return new Response(null, { status: 302, headers: { ...SECURITY_HEADERS, location } });
}

/** Decodes a part of a path; a malformed one names no model. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
