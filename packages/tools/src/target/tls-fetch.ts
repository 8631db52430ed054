import { type RequestOptions, request } from "node:https";
import type { Fetch } from "@tritonjs/client/http";
import type { TlsSettings } from "./endpoint.js";

/** `fetch` for addresses with `https:`, with TLS settings that the global one does not take. */
export function tlsFetch({ ca, cert, key, acceptAny = false }: TlsSettings): Fetch {
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const options: RequestOptions = {
        method,
        headers: Object.fromEntries(new Headers(headers as Record<string, string>)),
        signal: signal ?? undefined,
        ca,
        cert,
        key,
        rejectUnauthorized: !acceptAny,
      };
      const sent = request(url, options, (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.once("error", reject);
        answer.once("end", () => {
          const received = new Headers();
          for (const [name, value] of Object.entries(answer.headers))
            if (value !== undefined) received.set(name, String(value));
          const status = answer.statusCode ?? 0;
          const hasBody = status !== 204 && status !== 304;
          resolve(new Response(hasBody ? Buffer.concat(chunks) : null, { status, headers: received }));
        });
      });
      sent.once("error", (cause) => reject(new TypeError("fetch failed", { cause })));
      sent.end(body as Uint8Array | string | undefined);
    });
}
