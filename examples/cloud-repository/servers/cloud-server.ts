import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** An object of the server. */
export interface StoredObject {
  readonly bytes: Buffer;
  readonly generation: number;
  readonly isFolder: boolean;
}

/** One page of a list. */
export interface StoredPage {
  readonly keys: readonly string[];
  readonly folders: readonly string[];
  readonly next: string;
}

/** An in-memory server with one bucket, for protocols without a small server on npm. */
export abstract class CloudServer implements AsyncDisposable {
  readonly objects = new Map<string, StoredObject>();
  /** Requested paths, decoded. */
  readonly requests: string[] = [];
  /** Runs before an answer, and replaces it when it returns true. */
  intercept: (path: string, response: ServerResponse) => boolean = () => false;
  readonly #server: Server;
  #generation = 0;

  protected constructor() {
    this.#server = createServer((request, response) => {
      const url = new URL(request.url ?? "", "http://server");
      const path = decodeURIComponent(url.pathname);
      this.requests.push(path);
      if (!this.intercept(path, response)) this.answer(url, request, response);
    });
  }

  async listen(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return this;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  put(key: string, content: string, isFolder = false): void {
    this.objects.set(key, { bytes: Buffer.from(content), generation: ++this.#generation, isFolder });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    if (this.#server.listening) await once(this.#server, "close");
  }

  protected abstract answer(url: URL, request: IncomingMessage, response: ServerResponse): void;

  /** Objects under a prefix after a key, at most a thousand. */
  protected page(prefix: string, delimiter: string, after: string): StoredPage {
    const folders = new Set<string>();
    const keys: string[] = [];
    const sorted = [...this.objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
    for (const key of sorted) {
      const end = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
      if (end >= 0) folders.add(key.slice(0, end + 1));
      else keys.push(key);
      if (keys.length === 1_000) return { keys, folders: [...folders], next: key };
    }
    return { keys, folders: [...folders], next: "" };
  }

  protected md5(bytes: Buffer): string {
    return createHash("md5").update(bytes).digest("base64");
  }
}
