import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import S3rver from "@20minutes/s3rver";
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3";

/** Keys that the server accepts. */
export const S3_KEYS = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" } as const;

/** An S3 server on this machine, with the bucket `bucket`. */
export class S3Server implements AsyncDisposable {
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
      credentials: { accessKeyId: S3_KEYS.AWS_ACCESS_KEY_ID, secretAccessKey: S3_KEYS.AWS_SECRET_ACCESS_KEY },
    });
  }

  static async start(): Promise<S3Server> {
    const directory = await mkdtemp(join(tmpdir(), "tritonjs-s3-"));
    const server = new S3rver({
      port: 0,
      address: "127.0.0.1",
      silent: true,
      directory,
      // It signs the address of a list without the last slash, unlike Amazon's client.
      allowMismatchedSignatures: true,
      configureBuckets: [{ name: "bucket" }],
    });
    const { port } = await server.run();
    return new S3Server(port, server, directory);
  }

  async put(key: string, content: string): Promise<void> {
    await this.#client.send(new PutObjectCommand({ Bucket: "bucket", Key: key, Body: content }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy();
    const closed = this.server.close();
    this.server.httpServer.closeAllConnections();
    await closed;
    await rm(this.directory, { recursive: true });
  }
}
