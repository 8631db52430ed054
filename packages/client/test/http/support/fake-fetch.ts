import type { Fetch } from "../../../src/http/index.js";

/** A request as it was passed to `fetch`. */
export interface Sent {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string;
}

/** A `fetch` that records its calls and returns `answers`, repeating the last one. */
export function fakeFetch(...answers: (() => Response | Promise<Response>)[]): {
  fetch: Fetch;
  sent: Sent[];
} {
  const sent: Sent[] = [];
  const fetch: Fetch = async (url, init) => {
    sent.push({
      url,
      method: init.method ?? "GET",
      headers: new Headers(init.headers),
      body: typeof init.body === "string" ? init.body : new TextDecoder().decode(init.body as Uint8Array),
    });
    return answers[Math.min(sent.length, answers.length) - 1]!();
  };
  return { fetch, sent };
}

/** An answer with a JSON body. */
export function json(value: unknown, status = 200): () => Response {
  return () => new Response(JSON.stringify(value), { status });
}
