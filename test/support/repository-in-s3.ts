import { AsyncLocalStorage } from "node:async_hooks";
import crypto from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import S3rver from "@20minutes/s3rver";
import { DeleteObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import type { RepositoryFiles } from "./repository-on-disk.js";

/** The server makes the tokens of its pages with DES, which OpenSSL no longer has; AES works as well. */
for (const name of ["createCipheriv", "createDecipheriv"] as const) {
  const create = crypto[name] as (...given: [string, Buffer, Buffer]) => unknown;
  const twice = (bytes: Buffer) => Buffer.concat([bytes, bytes]);
  Object.assign(crypto, {
    [name]: (algorithm: string, key: Buffer, iv: Buffer, ...rest: []) =>
      algorithm === "des"
        ? create("aes-128-cbc", twice(key), twice(iv))
        : create(algorithm, key, iv, ...rest),
  });
}

/**
 * Whether a request is for a list: the server signs its address without the last slash, and accepts any caller that
 * knows a key.
 */
const LISTS = new AsyncLocalStorage<boolean>();

/** Keys that the server accepts. */
export const S3_KEYS = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" } as const;

/** Runs before the server, and replaces its answer when it returns true. */
export type Intercept = (path: string, response: ServerResponse) => boolean | Promise<boolean>;

/** A model repository in a bucket of an S3 server of its own, for one test. */
export class RepositoryInS3 implements AsyncDisposable {
  /** Paths that clients requested, without the test's own requests. */
  readonly requests: string[] = [];
  /** Objects of a page of a list; 1000 unless given. */
  pageSize: number | undefined;
  intercept: Intercept = () => false;
  readonly #client: S3Client;

  private constructor(
    readonly port: number,
    private readonly server: S3rver,
    private readonly directory: string,
  ) {
    this.#client = new S3Client({
      endpoint: `http://127.0.0.1:${port}`,
      region: "us-east-1",
      forcePathStyle: true,
      credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
    });
    this.#client.middlewareStack.add(
      (next) => (args) => {
        Object.assign((args.request as { headers: object }).headers, { "x-of-the-test": "yes" });
        return next(args);
      },
      { step: "build" },
    );
    const { httpServer } = server;
    const handlers = httpServer.listeners("request") as RequestListener[];
    httpServer.removeAllListeners("request");
    httpServer.on("request", async (request: IncomingMessage, response: ServerResponse) => {
      if (request.headers["x-of-the-test"] === undefined) {
        const path = decodeURIComponent(request.url ?? "");
        this.requests.push(path);
        const handled = await Promise.resolve(this.intercept(path.replace(/\?.*$/, ""), response)).catch(
          () => {
            response.destroy();
            return true;
          },
        );
        if (handled) return;
      }
      const isList = /^\/[^/?]+\/?(\?|$)/.test(request.url ?? "");
      if (isList && this.pageSize !== undefined) request.url += `&max-keys=${this.pageSize}`;
      LISTS.run(isList, () => {
        for (const handle of handlers) handle(request, response as never);
      });
    });
  }

  /** The repository is `models` in the bucket `bucket`. */
  static async create(files: RepositoryFiles): Promise<RepositoryInS3> {
    const directory = await mkdtemp(join(tmpdir(), "tritonjs-s3-"));
    const server = new S3rver({
      port: 0,
      address: "127.0.0.1",
      silent: true,
      directory,
      configureBuckets: [{ name: "bucket" }],
    });
    Object.defineProperty(server, "allowMismatchedSignatures", { get: () => LISTS.getStore() ?? false });
    const { port } = await server.run();
    const repository = new RepositoryInS3(port, server, directory);
    await repository.write(files);
    return repository;
  }

  get path(): string {
    return `s3://127.0.0.1:${this.port}/bucket/models`;
  }

  /** Requested objects, without their common prefix. */
  get downloads(): string[] {
    const start = "/bucket/models/";
    const found = this.requests.filter((request) => request.startsWith(start));
    return found.map((request) => request.slice(start.length).replace(/\?.*$/, "")).sort();
  }

  async write(files: RepositoryFiles): Promise<void> {
    const entries = Object.entries(files);
    for (let i = 0; i < entries.length; i += 20) {
      const some = entries.slice(i, i + 20);
      await Promise.all(some.map(([name, content]) => this.put(`models/${name}`, content)));
    }
  }

  async put(key: string, content: string | Uint8Array): Promise<void> {
    await this.#client.send(new PutObjectCommand({ Bucket: "bucket", Key: key, Body: content }));
  }

  async delete(name: string): Promise<void> {
    await this.#client.send(new DeleteObjectCommand({ Bucket: "bucket", Key: `models/${name}` }));
  }

  /** Stops the server with all its connections. */
  async stop(): Promise<void> {
    this.#client.destroy();
    const closed = this.server.close();
    this.server.httpServer.closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.server.httpServer.listening) await this.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}
