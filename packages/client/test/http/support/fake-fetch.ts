import type { Fetch } from "../../../src/http/index.js";

/** A request as it was given to `fetch`. */
export interface Sent {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string;
}

/** A `fetch` that keeps what it is asked, and answers with `answers`, the last one again and again. */
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
