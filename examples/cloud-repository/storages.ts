import { AzureServer } from "./servers/azure-server.js";
import { GoogleServer } from "./servers/google-server.js";
import { S3_KEYS, S3Server } from "./servers/s3-server.js";

/** A bucket for a model repository. */
export interface Storage {
  /** What `modelRepository` is set to. */
  readonly path: string;
  readonly server: AsyncDisposable & { put(key: string, content: string): void | Promise<void> };
}

/*
 * The three storages, as servers of this process. In real life, the paths name buckets of a cloud, and the variables are
 * those of the machine or its container: the addresses of the servers are then left out.
 */

export async function openS3(): Promise<Storage> {
  const server = await S3Server.start();
  Object.assign(process.env, S3_KEYS);
  return { path: `s3://127.0.0.1:${server.port}/bucket/models`, server };
}

export async function openGoogle(): Promise<Storage> {
  const server = await GoogleServer.start();
  process.env.STORAGE_EMULATOR_HOST = server.address;
  return { path: "gs://bucket/models", server };
}

export async function openAzure(): Promise<Storage> {
  const server = await AzureServer.start();
  process.env.AZURE_STORAGE_KEY = Buffer.from("key").toString("base64");
  process.env.AZURE_STORAGE_SERVICE_ENDPOINT = server.address;
  return { path: "as://account/bucket/models", server };
}
