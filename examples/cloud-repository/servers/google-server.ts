import type { IncomingMessage, ServerResponse } from "node:http";
import { CloudServer } from "./cloud-server.js";

/** The calls of Google Cloud Storage's JSON API for listing and reading, with the bucket `bucket`. */
export class GoogleServer extends CloudServer {
  static start(): Promise<GoogleServer> {
    return new GoogleServer().listen();
  }

  protected answer(url: URL, _: IncomingMessage, response: ServerResponse): void {
    const [, name, object] = /\/b\/([^/]+)\/o(?:\/(.*))?$/.exec(url.pathname) ?? [];
    const fail = (code: number, message: string) => {
      response.writeHead(code, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { code, message, errors: [{ message, reason: "notFound" }] } }));
    };
    if (name !== "bucket") fail(404, "The specified bucket does not exist.");
    else if (object === undefined) this.#list(url.searchParams, response);
    else {
      const stored = this.objects.get(decodeURIComponent(object));
      if (stored === undefined || url.searchParams.get("generation") !== String(stored.generation)) {
        fail(404, `No such object: bucket/${decodeURIComponent(object)}`);
      } else {
        response.writeHead(200, {
          "content-length": stored.bytes.length,
          "x-goog-hash": `md5=${this.md5(stored.bytes)}`,
        });
        response.end(stored.bytes);
      }
    }
  }

  #list(query: URLSearchParams, response: ServerResponse): void {
    const { keys, folders, next } = this.page(
      query.get("prefix") ?? "",
      query.get("delimiter") ?? "",
      query.get("pageToken") ?? "",
    );
    const items = keys.map((name) => {
      const { bytes, generation } = this.objects.get(name)!;
      return { name, bucket: "bucket", size: String(bytes.length), generation: String(generation) };
    });
    response.writeHead(200, { "content-type": "application/json" });
    const prefixes = folders.length === 0 ? {} : { prefixes: folders };
    response.end(JSON.stringify({ items, ...prefixes, ...(next === "" ? {} : { nextPageToken: next }) }));
  }
}
