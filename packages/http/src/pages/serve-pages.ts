import type { InferenceService, WebPages } from "@tritonjs/core/frontend";
import { ClientGone } from "../exchange/body-buffer.js";
import { headersOf, type V2Request } from "../exchange/request.js";
import { errorResponse, type V2Response } from "../exchange/response.js";
import { DEFAULT_MAX_INPUT_SIZE } from "../limits.js";
import type { V2Handler } from "../v2/v2-handler.js";

/** Methods whose requests have no body on the web platform. */
const WITHOUT_BODY = new Set(["GET", "HEAD"]);

/** Serves pages in front of a handler: the paths below that of the pages, and `/`, which leads to them. */
export function withPages(handler: V2Handler, service: InferenceService, pages: WebPages): V2Handler {
  const { path } = pages;
  const answer = pages.open(service);
  return async (request) => {
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
      if (thrown instanceof ClientGone) return undefined;
      return errorResponse(request, thrown, "application/json");
    } finally {
      memory.release();
    }
  };
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
