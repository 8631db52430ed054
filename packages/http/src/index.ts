import type { Frontend } from "@tritonjs/core";
import type { DefaultFrontends } from "@tritonjs/core/internal";
import { assertOptions, optionTypes } from "@tritonjs/protocol";
import type { InferenceService, ServiceFrontend, TlsOptions, WebPages } from "@tritonjs/server";
import { firstHeader, headersOf, type V2Request } from "./exchange/request.js";
import { faultResponse, type V2Response } from "./exchange/response.js";
import { DEFAULT_MAX_INPUT_SIZE } from "./limits.js";
import { metricsResponse, prepareMetrics } from "./routes/metrics.js";
import {
  answerErrors,
  HttpAccess,
  V2_OPTION_TYPES,
  type V2Handler,
  type V2Options,
  v2Handler,
} from "./routes/v2-handler.js";
import { type CorsOptions, listedOrigins, withCors } from "./server/cors.js";
import type { FastifyServerOptions } from "./server/fastify.js";
import { HTTP_LIMIT_TYPES, type HttpLimits, ListeningFrontend } from "./server/listening-frontend.js";

export type { TlsOptions } from "@tritonjs/server";
export * from "./fetch.js";

export type { HttpLimits } from "./server/listening-frontend.js";
export { type V2PluginOptions, v2Plugin } from "./server/v2-plugin.js";

/** The frontends of this package that `serve()` opens by default. */
export const defaultFrontends: DefaultFrontends = async (options) => {
  const pages = options.dashboard ? (await import("./dashboard/index.js")).dashboard() : undefined;
  const frontends: Frontend[] = [];
  if (options.allowHttp) {
    frontends.push(
      http({
        port: options.httpPort,
        address: options.httpAddress,
        maxInputSize: options.httpMaxInputSize,
        maxInputSizeName: "new Triton({ httpMaxInputSize })",
        ...(pages && (options.allowMetrics ? { landing: pages } : { pages })),
      }),
    );
  }
  if (options.allowMetrics) {
    frontends.push(
      metrics({ port: options.metricsPort, address: options.metricsAddress, ...(pages && { pages }) }),
    );
  }
  return frontends;
};

/** Options of {@link http}: its address, and how the routes answer. */
export interface HttpOptions extends V2Options {
  /** Port to listen on; 8000 unless given. 0 takes any free port. */
  readonly port?: number;
  /** Address to listen on; `localhost` unless given. */
  readonly address?: string;
  /** Lets other processes listen on the port too, from Node 22.12 on; false unless given. */
  readonly reusePort?: boolean;
  /** Encrypts connections, and asks clients for certificates if it has a `ca`; no encryption unless given. */
  readonly tls?: TlsOptions;
  /** Limits on the size and the duration of requests. */
  readonly limits?: Partial<HttpLimits>;
  /** Lets pages of other origins use the server; none unless given. */
  readonly cors?: CorsOptions;
  /** Pages to serve on this port too, such as `dashboard()`; none unless given. */
  readonly pages?: WebPages;
  /** Pages of another port to which `/` points; none unless given. */
  readonly landing?: WebPages;
  /** fastify's logger options; no logging unless given. */
  readonly logger?: FastifyServerOptions["logger"];
}

const HTTP_OPTION_TYPES = {
  ...optionTypes<Omit<HttpOptions, keyof V2Options>>({
    port: "number",
    address: "string",
    reusePort: "boolean",
    tls: "object",
    limits: "object",
    cors: "object",
    pages: "object",
    landing: "object",
    logger: ["boolean", "object"],
  }),
  ...V2_OPTION_TYPES,
};

/**
 * The v2 protocol on a port of its own.
 *
 * @throws TritonError INVALID_ARG for an unknown option.
 * @example
 * ```ts
 * await triton.serve({ frontends: [http({ port: 8000 })] });
 * ```
 */
export function http(options: HttpOptions = {}): ServiceFrontend {
  assertOptions("http()", options, HTTP_OPTION_TYPES);
  assertOptions("http({ limits })", options.limits ?? {}, HTTP_LIMIT_TYPES);
  const { port = 8000, address = "localhost", reusePort = false, logger, tls, limits, ...rest } = options;
  const { cors, pages, landing, ...v2 } = rest;
  const stays = pages !== undefined || v2.labels !== undefined || (logger ?? false) !== false;
  const portHint = "the option httpPort (or http({ port }))";
  return new ListeningFrontend(
    {
      name: "http",
      port,
      address,
      reusePort,
      portHint,
      tls,
      limits,
      logger,
      threaded: () => {
        // Other threads need this part of the pages, once they are open.
        const shown = landing && { landing: { path: landing.path, servedAt: landing.servedAt } };
        return stays ? undefined : { ...options, port, address, reusePort, ...shown };
      },
    },
    (service) => {
      const routes = v2Handler(
        service,
        { maxInputSizeName: "http({ maxInputSize })", ...v2 },
        listedOrigins(cors),
      );
      const handler = withCors(routes, cors);
      if (pages !== undefined) return withPages(handler, service, pages);
      if (landing === undefined) return handler;
      return (request) =>
        request.path === "/" && request.method === "GET"
          ? Promise.resolve(landingPage(request, landing))
          : handler(request);
    },
    (address) => {
      if (pages !== undefined) pages.servedAt = address;
    },
  );
}

/** Options of {@link metrics}. */
export interface MetricsOptions {
  /** Port to listen on; 8002 unless given. 0 takes any free port. */
  readonly port?: number;
  /** Address to listen on; `localhost` unless given. */
  readonly address?: string;
  /** Encrypts connections; no encryption unless given. */
  readonly tls?: TlsOptions;
  /** Pages to serve beside the metrics, such as `dashboard()`; none unless given. */
  readonly pages?: WebPages;
  /** fastify's logger options; no logging unless given. */
  readonly logger?: FastifyServerOptions["logger"];
}

const METRICS_OPTION_TYPES = optionTypes<MetricsOptions>({
  port: "number",
  address: "string",
  tls: "object",
  logger: ["boolean", "object"],
  pages: "object",
});

/**
 * Prometheus metrics at `/metrics` on a port of their own.
 *
 * @throws TritonError INVALID_ARG for an unknown option.
 * @example
 * ```ts
 * await triton.serve({ frontends: [http(), metrics({ port: 8002 })] });
 * ```
 */
export function metrics(options: MetricsOptions = {}): ServiceFrontend {
  assertOptions("metrics()", options, METRICS_OPTION_TYPES);
  const { port = 8002, address = "localhost", tls, logger, pages } = options;
  const portHint = "the option metricsPort (or metrics({ port }))";
  return new ListeningFrontend(
    { name: "metrics", port, address, portHint, tls, logger },
    (service) => {
      void prepareMetrics(service);
      const access = new HttpAccess(service);
      const handler = answerErrors((request) => answer(service, access, request), "text/plain");
      return pages === undefined ? handler : withPages(handler, service, pages);
    },
    (address) => {
      if (pages !== undefined) pages.servedAt = address;
    },
  );
}

/** Answers a request. As in Triton, paths other than `/metrics` get an empty page. */
async function answer(
  service: InferenceService,
  access: HttpAccess,
  request: V2Request,
): Promise<V2Response> {
  const refusal = await access.refusal(request, "metrics", "text/plain");
  if (refusal !== undefined) return refusal;
  if (request.method !== "GET") return faultResponse(405, "Method Not Allowed", "text/plain");
  if (/^\/metrics\/?$/.test(request.path)) return metricsResponse(service, request);
  return { status: 200, headers: { "content-type": "text/plain; charset=utf-8" }, body: Buffer.alloc(0) };
}

const WITHOUT_BODY = new Set(["GET", "HEAD"]);

/** Serves pages in front of a handler: the paths below that of the pages, and `/`, which leads to them. */
function withPages(handler: V2Handler, service: InferenceService, pages: WebPages): V2Handler {
  const { path } = pages;
  const answer = pages.open({ service });
  return answerErrors(async (request) => {
    if (request.path === "/" && request.method === "GET") {
      return { status: 302, headers: { location: `${path}/` }, body: Buffer.alloc(0) };
    }
    if (request.path !== path && !request.path.startsWith(`${path}/`)) return handler(request);
    const memory = service.requestMemory.share();
    const gone = new AbortController();
    const forget = request.onGone(() => gone.abort());
    try {
      const body = WITHOUT_BODY.has(request.method)
        ? undefined
        : await request.readBody(memory, DEFAULT_MAX_INPUT_SIZE);
      return await fromWeb(await answer(toWeb(request, body, gone.signal)), forget);
    } catch (thrown) {
      forget();
      throw thrown;
    } finally {
      memory.release();
    }
  });
}

function toWeb(request: V2Request, body: Uint8Array | undefined, signal: AbortSignal): Request {
  const headers = headersOf(request);
  const { method } = request;
  const url = `http://localhost${request.path}`;
  if (body === undefined) return new Request(url, { method, headers, signal });
  return new Request(url, { method, headers, signal, body: body as Uint8Array<ArrayBuffer> });
}

/** @param onEnd called when the answer is complete, or its reader has left */
async function fromWeb(response: Response, onEnd: () => void): Promise<V2Response> {
  const { status } = response;
  const headers = Object.fromEntries(response.headers);
  const { "content-length": length, ...others } = headers;
  if (response.body !== null && length === undefined) {
    return { status, headers, body: piecesOf(response.body, onEnd) };
  }
  const body = new Uint8Array(await response.arrayBuffer());
  onEnd();
  return { status, headers: others, body };
}

async function* piecesOf(body: ReadableStream<Uint8Array>, onEnd: () => void): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } finally {
    onEnd();
  }
}

/** Points to pages that another frontend serves. */
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
