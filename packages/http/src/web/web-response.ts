import { byteLength, isWhole, joined, type V2Response } from "../exchange/response.js";

/** The status of an answer that nobody waits for. */
const CLIENT_CLOSED_REQUEST = 499;

/** An answer as a response of the web platform. */
export function toWebResponse(response: V2Response | undefined): Response {
  if (response === undefined) return new Response(null, { status: CLIENT_CLOSED_REQUEST });
  const { status } = response;
  const body = isWhole(response.body) ? (joined(response.body) ?? response.body) : response.body;
  const headers = new Headers(response.headers);
  if (body instanceof Uint8Array) {
    headers.set("content-length", String(body.length));
    return new Response(body as Uint8Array<ArrayBuffer>, { status, headers });
  }
  if (isWhole(body)) {
    headers.set("content-length", String(byteLength(body)));
    return new Response(toStream(piecesOf(body)), { status, headers });
  }
  return new Response(toStream(body[Symbol.asyncIterator]()), { status, headers });
}

async function* piecesOf(body: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* body;
}

function toStream(pieces: AsyncIterator<Uint8Array>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done) controller.close();
      else controller.enqueue(value as Uint8Array<ArrayBuffer>);
    },
    async cancel() {
      await pieces.return?.();
    },
  });
}
