import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import type { EndpointGroup } from "@tritonjs/core/extension";
import { errorFor, TritonError } from "@tritonjs/protocol";
import {
  AccessGate,
  type InferenceService,
  type Restrictions,
  SiteGuard,
  serviceOf,
  type WebPages,
} from "@tritonjs/server";
import { HostRule, isForeign, type ServerInspector } from "@tritonjs/server/internal";
import { fetchHandler } from "../server/fetch-handler.js";
import { Viewers } from "./live-data.js";

/**
 * The dashboard: a live page of all models, with a form for inference. It needs the access token if the groups
 * `statistics`, `model-repository`, `logging` or `model-config` do. While nobody watches, it costs nothing.
 *
 * Serve it on the port of the metrics or of HTTP, or in an app: `open` makes a handler of the web platform, which
 * `toNodeListener` of `@tritonjs/http` turns into one for `node:http` and Express.
 *
 * @throws TritonError INVALID_ARG for a path that does not begin with a slash, or ends with one.
 * @example
 * ```ts
 * await triton.serve({ frontends: [http(), metrics({ pages: dashboard() })] });
 * app.all("/dashboard/*", (context) => page(context.req.raw)); // Hono, with page = dashboard().open(triton)
 * ```
 */
export function dashboard(options: DashboardOptions = {}): WebPages {
  const { path = "/dashboard" } = options;
  if (!/^(\/[^/?#]+)+$/.test(path)) {
    throw errorFor("INVALID_OPTION", `dashboard path: expected a path such as "/dashboard", got "${path}"`);
  }
  return { path, open: (served) => dashboardHandler(serviceOf(served), { ...options, path }) };
}

/** Options of `dashboard`. */
export interface DashboardOptions {
  /** Prefix of all paths, as clients write it; "/dashboard" unless given. */
  readonly path?: string;
  /** Groups of operations that require a header, `{}` for none; those of the `Triton`'s `security` unless given. */
  readonly restrictions?: Restrictions;
  /** Settings that the page lists under "Configuration", by name; none unless given. Leave secrets out. */
  readonly configuration?: Readonly<Record<string, string>>;
  /** Milliseconds between two samples while somebody watches; 1000 unless given. */
  readonly intervalMs?: number;
}

/** Default of the option `intervalMs`: a person reads no faster. */
const INTERVAL_MS = 1000;

/** Largest number of instances that a change may ask for: a typing error must not start thousands of threads. */
const MOST_INSTANCES = 256;

const MOST_BODY_BYTES = 1024;

function dashboardHandler(
  service: InferenceService,
  options: DashboardOptions & { readonly path: string },
): (request: Request) => Promise<Response> {
  const { inspector } = service;
  if (inspector === undefined) {
    throw new TritonError(
      "UNSUPPORTED",
      "the dashboard needs a service with an inspector, such as serviceOf(triton)",
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
      const location = `.${path.slice(path.lastIndexOf("/"))}/`;
      if (at === "") return new Response(null, { status: 302, headers: { ...SECURITY_HEADERS, location } });
      const file = await pageFile(at === "/" ? "index.html" : at.replace(/^\/assets\//, ""), inspector.pages);
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
    if (request.method === "GET" && action === "recording")
      return recordingAnswer(inspector.pages.get(RECORDINGS)?.file?.());
    if (request.method === "GET" && action === "events") {
      return eventsAnswer(viewers.open(name === "" ? undefined : { name, version }, request.signal));
    }
    if (request.method === "POST" && action === "instances" && name !== "") {
      return changeInstances(inspector, name, version, request);
    }
    return faultAnswer(404, "Not Found");
  };
}

/** Facts that do not change while the page is open. */
function infoOf(
  service: InferenceService,
  inspector: ServerInspector,
  configuration: Readonly<Record<string, string>>,
): object {
  return {
    server: service.serverMetadata(),
    node: process.version,
    modelControlMode: inspector.modelControlMode,
    isRecording: inspector.pages.has(RECORDINGS),
    /** The extensions with something to show, and whether they have a module for it. */
    pages: [...inspector.pages].map(([name, { view }]) => ({ name, hasView: view !== undefined })),
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

/** The extension whose file the panel of recordings opens. */
const RECORDINGS = "recordings";

function recordingAnswer(recording: Uint8Array | undefined): Response {
  if (recording === undefined) {
    return faultAnswer(
      404,
      "the server records no scheduling: start it with recordScheduling() or --scheduling-ring",
    );
  }
  const headers = {
    ...SECURITY_HEADERS,
    "content-type": "application/octet-stream",
    "content-disposition": 'attachment; filename="scheduling.tape"',
    "cache-control": "no-store",
  };
  return new Response(recording as Uint8Array<ArrayBuffer>, { headers });
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
  } catch (thrown) {
    const { statusCode, message } = TritonError.from(thrown);
    return faultAnswer(statusCode, message);
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

/** Decodes a part of a path; a malformed one names no model. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Groups whose data the page shows. A caller needs the headers of those that are restricted. */
const SHOWN: readonly EndpointGroup[] = ["statistics", "model-repository", "logging", "model-config"];

/** Decides which callers get data. The files of the page itself hold none, so everybody gets them. */
class PageAccess {
  readonly #gate: AccessGate;
  readonly #hosts: HostRule;
  readonly #sites: SiteGuard;
  readonly #open: boolean;

  constructor(service: Pick<InferenceService, "allowedHosts" | "restrictions">, restrictions: Restrictions) {
    const gate = new AccessGate(restrictions);
    this.#gate = gate;
    this.#hosts = new HostRule(service.allowedHosts);
    this.#sites = new SiteGuard({ service, restrictions });
    this.#open = !SHOWN.some((group) => gate.guards(group));
  }

  /** The refusal of a request for data, or of a change; undefined if the caller may make it. */
  refusal(request: Request): Response | undefined {
    const sent = (name: string) => request.headers.get(name) ?? undefined;
    for (const group of SHOWN) {
      const header = this.#gate.missingHeader(group, sent);
      if (header !== undefined) {
        const text = `This API is restricted, expecting header '${header}'${this.#gate.hint(group)}`;
        return faultAnswer(403, text, { header });
      }
    }
    const fault = this.#sites.fault(request, sent, "model-repository");
    return fault === undefined ? undefined : faultAnswer(403, fault);
  }

  /**
   * The refusal of a request that a page of another site makes. Without it, such a page could load and unload models in
   * the name of an operator whose browser can reach the server. If no header is needed, requests to unknown names of
   * the server are refused too: such a name may be one that another site lets lead here.
   */
  foreign(request: Request): Response | undefined {
    const header = (name: string) => request.headers.get(name) ?? undefined;
    const host = this.#open ? this.#hosts.fault(header("host")) : undefined;
    if (host !== undefined) return faultAnswer(403, host);
    const origin = header("origin");
    const site = header("sec-fetch-site");
    if (
      isForeign(origin, site, header("host")) &&
      !(origin !== undefined && this.#hosts.allowsOrigin(origin))
    ) {
      const from = site ?? origin;
      return faultAnswer(403, `requests of other sites are refused: expected same-origin, got ${from}`);
    }
    return undefined;
  }
}

function jsonAnswer(status: number, value: unknown): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: { ...SECURITY_HEADERS, "content-type": "application/json", "cache-control": "no-store" },
  });
}

function faultAnswer(status: number, error: string, more: object = {}): Response {
  return jsonAnswer(status, { error, ...more });
}

/** The folder `page` of this package, to which its build adds files of other packages. */
const PAGE = new URL("../../page/", import.meta.url);

/** The files that browsers may ask for. Others do not exist. */
const FILES: ReadonlySet<string> = new Set([
  ...[
    "index.html",
    "style.css",
    "main.js",
    "app.js",
    "api.js",
    "charts.js",
    "extension-panel.js",
    "format.js",
    "half-floats.js",
  ],
  ...["image-input.js", "infer-form.js", "infer-request.js", "model-detail.js", "model-list.js"],
  ...["recordings.js", "server-panels.js", "time-travel.js", "preact.js", "uplot.js", "uplot.css"],
]);

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".css": "text/css",
  ".js": "text/javascript",
};

/**
 * Headers of every answer: the page loads nothing from elsewhere, runs no inline script, takes no text for HTML, and
 * cannot be framed.
 */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

const read = new Map<string, Promise<Buffer>>();

/**
 * Answers with a file of the page, or with the view `<name>.js` of an extension; undefined if there is none of this name.
 * Each file is read once.
 */
async function pageFile(name: string, pages: ServerInspector["pages"]): Promise<Response | undefined> {
  const url = FILES.has(name) ? new URL(name, PAGE) : pages.get(name.replace(/\.js$/, ""))?.view;
  if (url === undefined) return undefined;
  let bytes = read.get(url.href);
  if (bytes === undefined) {
    bytes = readFile(url);
    read.set(url.href, bytes);
    bytes.catch(() => read.delete(url.href));
  }
  const body = new Uint8Array(await bytes);
  const headers = {
    ...SECURITY_HEADERS,
    "content-type": `${TYPES[extname(url.pathname)]}; charset=utf-8`,
    "content-length": `${body.length}`,
    "cache-control": "no-cache",
  };
  return new Response(body, { headers });
}
