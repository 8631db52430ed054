import type { IncomingMessage, ServerResponse } from "node:http";
import { CloudServer } from "./cloud-server.js";

/** The calls of Azure Blob Storage for listing and reading, with the container `bucket`. */
export class AzureServer extends CloudServer {
  /** The `authorization` headers of requests; `none` where there was none. */
  readonly authorizations = new Set<string>();

  static start(): Promise<AzureServer> {
    return new AzureServer().listen();
  }

  protected answer(url: URL, request: IncomingMessage, response: ServerResponse): void {
    const [authorization = "none"] = (request.headers.authorization ?? "none").split(":");
    this.authorizations.add(authorization);
    const [, container = "", blob = ""] = /^\/([^/]*)(?:\/(.*))?$/.exec(url.pathname) ?? [];
    const fail = (status: number, code: string) => {
      response.writeHead(status, { "content-type": "application/xml", "x-ms-error-code": code });
      response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}.</Message></Error>`);
    };
    if (container !== "bucket") fail(404, "ContainerNotFound");
    else if (blob === "") this.#list(url.searchParams, response);
    else {
      const stored = this.objects.get(decodeURIComponent(blob));
      if (stored === undefined) fail(404, "BlobNotFound");
      else if (request.headers["if-match"] !== `"${stored.generation}"`) fail(412, "ConditionNotMet");
      else {
        response.writeHead(200, {
          "content-length": stored.bytes.length,
          etag: `"${stored.generation}"`,
          "last-modified": new Date().toUTCString(),
        });
        response.end(stored.bytes);
      }
    }
  }

  #list(query: URLSearchParams, response: ServerResponse): void {
    const { keys, folders, next } = this.page(
      query.get("prefix") ?? "",
      query.get("delimiter") ?? "",
      query.get("marker") ?? "",
    );
    const blobs = keys.map((name) => {
      const { bytes, generation, isFolder } = this.objects.get(name)!;
      const metadata = isFolder ? "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata>" : "";
      return `<Blob><Name>${name}</Name><Properties><Last-Modified>${new Date().toUTCString()}</Last-Modified>
        <Etag>${generation}</Etag><Content-Length>${bytes.length}</Content-Length></Properties>${metadata}</Blob>`;
    });
    const prefixes = folders.map((name) => `<BlobPrefix><Name>${name}</Name></BlobPrefix>`);
    response.writeHead(200, { "content-type": "application/xml" });
    response.end(`<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="bucket"><Blobs>
      ${blobs.join("")}${prefixes.join("")}</Blobs><NextMarker>${next}</NextMarker></EnumerationResults>`);
  }
}
