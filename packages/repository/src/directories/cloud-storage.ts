import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import type { Clock } from "@tritonjs/core/extension";
import { importPeer, notLoaded } from "@tritonjs/core/internal/worker";
import { errorFor, TritonError } from "@tritonjs/protocol";

export interface CloudPath {
  /** The path for display, without redundant slashes. */
  readonly text: string;
  readonly scheme: "s3" | "gs" | "as";
  /** Server of S3 that the path names; storage account or host of Azure; otherwise empty. */
  readonly host: string;
  readonly bucket: string;
  /** Prefix of the repository's keys: empty, or with a slash at its end. */
  readonly prefix: string;
}

/** Whether a path begins with `s3://`, `gs://` or `as://`. */
export function isCloudPath(path: string): boolean {
  return /^(s3|gs|as):\/\//.test(path);
}

/**
 * Parses a cloud path: `s3://bucket/path`, `s3://host:port/bucket/path`, `s3://https://host:port/bucket/path`,
 * `gs://bucket/path`, `as://account/container/path`, `as://account.blob.core.windows.net/container/path`.
 *
 * @throws TritonError INVALID_ARG for a path without a bucket
 */
export function parseCloudPath(path: string): CloudPath {
  const scheme = path.slice(0, 2) as CloudPath["scheme"];
  const [, protocol = "", rest = ""] = /^(https?:\/\/)?(.*)$/s.exec(path.slice("s3://".length)) ?? [];
  const parts = rest
    .replace(scheme === "as" ? /\?.*$/s : /$^/, "")
    .split("/")
    .filter((part) => part !== "");
  const hasHost = scheme === "as" || (scheme === "s3" && (protocol !== "" || /:\d+$/.test(parts[0] ?? "")));
  const host = hasHost ? (parts.shift() ?? "") : "";
  const [bucket = "", ...folders] = parts;
  if (bucket === "" || (hasHost && host === "") || (scheme !== "s3" && protocol !== "")) {
    const form = scheme === "as" ? "as://account/container/path" : `${scheme}://bucket/path`;
    throw errorFor(
      "INVALID_REPOSITORY",
      `No bucket name found in path: ${path} (expected a path as ${form})`,
    );
  }
  const address = scheme === "s3" && hasHost ? `${protocol || "http://"}${host}` : host;
  const shown = scheme === "s3" && hasHost ? `${protocol}${host}` : host;
  const text = `${scheme}://${[...(hasHost ? [shown] : []), bucket, ...folders].join("/")}`;
  return { text, scheme, host: address, bucket, prefix: folders.map((folder) => `${folder}/`).join("") };
}

/** A file in a cloud. */
export interface CloudObject {
  readonly key: string;
  readonly sizeBytes: number;
  /** Changes with the contents. */
  readonly etag: string;
  /** True for an object that represents a folder. Some tools write such objects. */
  readonly isFolder: boolean;
}

interface CloudPage {
  readonly objects: readonly CloudObject[];
  /** Prefixes that end at the next slash; empty unless `byFolder` is set. */
  readonly folders: readonly string[];
  /** Token of the next page; undefined for the last page. */
  readonly next: string | undefined;
}

interface ListOptions {
  /** Groups the keys by the next slash after the prefix. */
  readonly byFolder: boolean;
  /** Token of the page: `next` of the previous page. */
  readonly from: string | undefined;
  readonly signal: AbortSignal;
}

/** A bucket of a vendor. Its methods throw the errors of the SDK. */
export interface CloudStorage {
  list(prefix: string, options: ListOptions): Promise<CloudPage>;
  /** Reads the contents of an object. Fails with status 404 or 412 when the object has changed. */
  download(object: CloudObject, signal: AbortSignal): Promise<Readable>;
  close(): void;
}

/** Limit on the files of a repository. A path with more files is not a repository. */
export const MAX_OBJECTS = 1_000_000;

export interface Listing {
  readonly objects: readonly CloudObject[];
  readonly folders: readonly string[];
}

/**
 * Lists all objects under a prefix. With `byFolder` it lists those up to the next slash, and the rest as folders.
 *
 * @throws TritonError INTERNAL with Triton's text when the prefix cannot be read, UNAVAILABLE when cancelled
 */
export async function listObjects(
  storage: CloudStorage,
  path: CloudPath,
  prefix: string,
  patience: Patience,
  byFolder = false,
): Promise<Listing> {
  const objects: CloudObject[] = [];
  const folders: string[] = [];
  const shown = shownKey(path, prefix);
  let from: string | undefined;
  try {
    do {
      const page = await withSilenceLimit(patience, (signal) =>
        storage.list(prefix, { byFolder, from, signal }),
      );
      objects.push(...page.objects);
      folders.push(...page.folders);
      from = page.next;
      if (objects.length > MAX_OBJECTS) {
        throw errorFor(
          "INVALID_REPOSITORY",
          `cannot list ${shown}: expected at most ${MAX_OBJECTS} objects, got more`,
        );
      }
    } while (from !== undefined);
  } catch (error) {
    throw cloudError(`Could not list contents of directory at ${shown}`, error);
  }
  return { objects, folders };
}

export function shownKey({ text, prefix }: CloudPath, key: string): string {
  const bucket = text.slice(0, text.length + 1 - prefix.length);
  return `${prefix === "" ? `${text}/` : bucket}${key}`.replace(/\/$/, "");
}

/** Longest wait without progress, in milliseconds. */
export const MAX_SILENCE_MS = 30_000;

export interface Patience {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Waits for work of an SDK. The wait ends when `signal` aborts and after half a minute without progress, even if the
 * SDK ignores the signal.
 *
 * @throws TritonError UNAVAILABLE when the work is cancelled
 */
export async function withSilenceLimit<T>(
  { clock, signal }: Patience,
  work: (signal: AbortSignal, alive: () => void) => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  let lastSign = clock.now();
  let timer: { cancel(): void } | undefined;
  const watch = (afterMs: number) => {
    timer = clock.setTimer(afterMs, () => {
      const leftMs = lastSign + MAX_SILENCE_MS - clock.now();
      if (leftMs > 0) watch(leftMs);
      else own.abort(errorFor("STORAGE_TIMEOUT", `no answer for ${MAX_SILENCE_MS / 1000} seconds`));
    });
  };
  const onAbort = () => own.abort(signal.reason);
  if (signal.aborted) throw TritonError.from(signal.reason, "UNAVAILABLE");
  signal.addEventListener("abort", onAbort);
  const givenUp = new Promise<never>((_, reject) => {
    own.signal.addEventListener("abort", () => reject(TritonError.from(own.signal.reason, "UNAVAILABLE")));
  });
  watch(MAX_SILENCE_MS);
  try {
    const done = work(own.signal, () => {
      lastSign = clock.now();
    });
    // The result of cancelled work is ignored.
    done.catch(() => {});
    return await Promise.race([done, givenUp]);
  } finally {
    timer?.cancel();
    signal.removeEventListener("abort", onAbort);
  }
}

/** The error of an object that has changed since it was listed. */
class ObjectChanged extends Error {
  readonly statusCode = 412;

  constructor(key: string) {
    super(`object ${key} changed while it was copied`);
  }
}

/** The HTTP status in an error of a vendor's SDK. Each SDK has it in a different place. */
export function statusOf(error: unknown): number | undefined {
  const { $metadata, statusCode, code } = (error ?? {}) as {
    readonly $metadata?: { readonly httpStatusCode?: unknown };
    readonly statusCode?: unknown;
    readonly code?: unknown;
  };
  const found = [$metadata?.httpStatusCode, statusCode, code].find((value) => typeof value === "number");
  return found as number | undefined;
}

/** The error of a failed action with a vendor's SDK, in Triton's text. */
export function cloudError(tried: string, error: unknown): TritonError {
  if (TritonError.is(error)) {
    return new TritonError(error.code, `${tried}: ${error.message}`, { reason: error.reason, cause: error });
  }
  const { name = "Error", message } = deepest(error);
  const status = statusOf(error);
  // Some answers have no message besides their status.
  const words = [...new Set([message, ...(status === undefined ? [] : [`HTTP status ${status}`])])].filter(
    (word) => word !== undefined && word !== "" && word !== "UnknownError",
  );
  const text = `${tried} due to exception: ${name}, error message: ${words.join(", ") || "none"}`;
  return errorFor("FILE_NOT_READABLE", text, { cause: error });
}

/** Finds the innermost error. A failed connection is one error for each address, inside an error without a message. */
function deepest(error: unknown): { readonly name?: string; readonly message?: string } {
  if (error instanceof AggregateError && error.message === "" && error.errors.length > 0) {
    return deepest(error.errors[0]);
  }
  return error instanceof Error ? error : { message: String(error) };
}

/**
 * Opens the storage of a path with the credentials for it.
 *
 * @throws TritonError UNAVAILABLE when the vendor's package is not installed, and as `findCredentials`
 */
export async function openStorage(
  path: CloudPath,
  environment: NodeJS.ProcessEnv = process.env,
  sdks: CloudSdks = INSTALLED_SDKS,
): Promise<CloudStorage> {
  const credentials = await findCredentials(path, environment);
  switch (path.scheme) {
    case "s3":
      return s3Storage(path, credentials, sdks);
    case "gs":
      return gsStorage(path, credentials, sdks);
    case "as":
      return asStorage(path, credentials, sdks, environment.AZURE_STORAGE_SERVICE_ENDPOINT);
  }
}

/** The credentials of a storage, by Triton's names. The vendor's SDK finds those that are empty. */
type CloudCredentials = Readonly<Record<string, string>>;

/** Names in Triton's credential file, with the environment variables for them. */
const ENVIRONMENT: Readonly<Record<CloudPath["scheme"], Readonly<Record<string, string>>>> = {
  s3: {
    key_id: "AWS_ACCESS_KEY_ID",
    secret_key: "AWS_SECRET_ACCESS_KEY",
    session_token: "AWS_SESSION_TOKEN",
    region: "AWS_DEFAULT_REGION",
    profile: "AWS_PROFILE",
  },
  gs: { path: "GOOGLE_APPLICATION_CREDENTIALS" },
  as: {
    account_str: "AZURE_STORAGE_ACCOUNT",
    account_key: "AZURE_STORAGE_KEY",
    auth_type: "AZURE_STORAGE_AUTH_TYPE",
    client_id: "AZURE_STORAGE_CLIENT_ID",
  },
};

/**
 * Finds the credentials for a path. In the file `TRITON_CLOUD_CREDENTIAL_PATH`, the longest name that the path begins
 * with wins. Without that file, they come from the environment.
 *
 * @throws TritonError INVALID_ARG for a file that cannot be read, NOT_FOUND for a file without credentials for the path
 */
export async function findCredentials(
  { scheme, text }: CloudPath,
  environment: NodeJS.ProcessEnv,
): Promise<CloudCredentials> {
  const file = environment.TRITON_CLOUD_CREDENTIAL_PATH;
  if (file === undefined || file === "") {
    return mapValues(ENVIRONMENT[scheme], (name) => environment[name] ?? "");
  }
  const sections = Object.entries(asObject(asObject(await readJson(file))[scheme]));
  const found = sections.filter(([name]) => text.startsWith(name)).sort(([a], [b]) => b.length - a.length)[0];
  if (found === undefined) {
    throw errorFor("MISSING_CREDENTIALS", `Cannot match credential for path  ${text}`);
  }
  const [, values] = found;
  if (typeof values === "string") return { path: values };
  const given = asObject(values);
  return mapValues(ENVIRONMENT[scheme], (_, key) => {
    const value = given[key];
    return typeof value === "string" ? value : "";
  });
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (cause) {
    // The parser's message may quote the file.
    const why = cause instanceof SyntaxError ? "it is not JSON" : TritonError.from(cause).message;
    const text = `cannot read the cloud credentials ${file} (TRITON_CLOUD_CREDENTIAL_PATH): ${why}`;
    throw errorFor("INVALID_REPOSITORY", text);
  }
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function mapValues(
  names: Readonly<Record<string, string>>,
  map: (value: string, key: string) => string,
): CloudCredentials {
  return Object.fromEntries(Object.entries(names).map(([key, value]) => [key, map(value, key)]));
}

/** The vendors' packages. Each is imported at the first use of a path of the vendor. */
export interface CloudSdks {
  readonly s3: () => Promise<typeof import("@aws-sdk/client-s3")>;
  readonly gs: () => Promise<typeof import("@google-cloud/storage")>;
  readonly as: () => Promise<typeof import("@azure/storage-blob")>;
  readonly azureIdentity: () => Promise<AzureIdentity>;
}

interface AzureIdentity {
  readonly DefaultAzureCredential: new () => AzureToken;
  readonly ManagedIdentityCredential: new (options?: { clientId: string }) => AzureToken;
}

type AzureToken = import("@azure/storage-blob").StorageSharedKeyCredential;

export const INSTALLED_SDKS: CloudSdks = {
  s3: () => importPeer("@aws-sdk/client-s3", import.meta.url),
  gs: () => importPeer("@google-cloud/storage", import.meta.url),
  as: () => importPeer("@azure/storage-blob", import.meta.url),
  azureIdentity: () => importPeer("@azure/identity", import.meta.url),
};

/** Imports a package of a vendor, or says how to install it. */
async function importSdk<T>(packageName: string, path: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    throw notLoaded(`the package ${packageName}, which ${path} needs`, cause, `npm install ${packageName}`);
  }
}

const CONNECTION_TIMEOUT_MS = 5_000;

/** Opens a bucket of Amazon S3, or of a server that speaks its protocol. */
async function s3Storage(
  { text, host, bucket }: CloudPath,
  credentials: CloudCredentials,
  sdks: CloudSdks,
): Promise<CloudStorage> {
  const sdk = await importSdk("@aws-sdk/client-s3", text, sdks.s3);
  const options = {
    ...(host === "" ? {} : { endpoint: host }),
    ...identity(credentials),
    // As in Triton, buckets are part of the path. Servers other than Amazon's understand that too.
    forcePathStyle: true,
    followRegionRedirects: true,
    requestHandler: { connectionTimeout: CONNECTION_TIMEOUT_MS },
  };
  const { region = "" } = credentials;
  let client = new sdk.S3Client({ ...options, ...(region === "" ? {} : { region }) });
  // When neither the environment nor a profile names a region, the region is the default of Triton's client.
  await client.config.region().catch(() => {
    client = new sdk.S3Client({ ...options, region: "us-east-1" });
  });
  return {
    async list(prefix, { byFolder, from, signal }) {
      const request = {
        Bucket: bucket,
        Prefix: prefix,
        ...(byFolder ? { Delimiter: "/" } : {}),
        ...(from === undefined ? {} : { ContinuationToken: from }),
      };
      const page = await client.send(new sdk.ListObjectsV2Command(request), { abortSignal: signal });
      return {
        objects: (page.Contents ?? []).map(({ Key = "", Size = 0, ETag = "" }) => ({
          key: Key,
          sizeBytes: Size,
          etag: ETag,
          isFolder: Key.endsWith("/"),
        })),
        folders: (page.CommonPrefixes ?? []).flatMap(({ Prefix }) => Prefix ?? []),
        next: page.IsTruncated === true ? page.NextContinuationToken : undefined,
      };
    },
    async download({ key, etag }, signal) {
      const request = new sdk.GetObjectCommand({ Bucket: bucket, Key: key, IfMatch: etag });
      const { Body, ETag } = await client.send(request, { abortSignal: signal });
      const body = Body as Readable;
      if (ETag === etag) return body;
      // Some servers ignore the condition.
      body.destroy();
      throw new ObjectChanged(key);
    },
    close: () => client.destroy(),
  };
}

/** The credentials: keys come before a profile, and a profile before the SDK's own search. */
function identity({ key_id, secret_key, session_token, profile }: CloudCredentials) {
  if (key_id && secret_key) {
    const session = session_token ? { sessionToken: session_token } : {};
    return { credentials: { accessKeyId: key_id, secretAccessKey: secret_key, ...session } };
  }
  return profile ? { profile } : {};
}

/** Without these limits, the SDK retries for ten minutes. */
const GOOGLE_RETRIES = { autoRetry: true, maxRetries: 2, maxRetryDelay: 2, totalTimeout: 20 };

/** The usual address. The SDK looks for no credentials when an address is given. */
const WITHOUT_CREDENTIALS = { apiEndpoint: "https://storage.googleapis.com/" };

/** Opens a bucket of Google Cloud Storage. */
async function gsStorage(
  { text, bucket }: CloudPath,
  { path = "" }: CloudCredentials,
  sdks: CloudSdks,
): Promise<CloudStorage> {
  const { Storage } = await importSdk("@google-cloud/storage", text, sdks.gs);
  const options = { retryOptions: GOOGLE_RETRIES, ...(path === "" ? {} : { keyFilename: path }) };
  let storage = new Storage(options).bucket(bucket);

  /** Tries again without credentials. Public buckets need none, and a machine may have none. */
  const orAnonymously = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (path !== "" || !/could not load the default credentials/i.test(String(error))) throw error;
      storage = new Storage({ ...options, ...WITHOUT_CREDENTIALS }).bucket(bucket);
      return work();
    }
  };
  return {
    list: (prefix, { byFolder, from }) =>
      orAnonymously(async () => {
        const [files, , answer] = await storage.getFiles({
          prefix,
          autoPaginate: false,
          ...(byFolder ? { delimiter: "/" } : {}),
          ...(from === undefined ? {} : { pageToken: from }),
        });
        const { prefixes = [], nextPageToken } = answer as {
          readonly prefixes?: readonly string[];
          readonly nextPageToken?: string;
        };
        return {
          objects: files.map(({ name, metadata }) => ({
            key: name,
            sizeBytes: Number(metadata.size ?? 0),
            // Each write of an object has a number. A download can request that number.
            etag: String(metadata.generation ?? ""),
            isFolder: name.endsWith("/"),
          })),
          folders: prefixes,
          next: nextPageToken === "" ? undefined : nextPageToken,
        };
      }),
    download: async ({ key, etag }, signal) => {
      const file = storage.file(key, { generation: etag });
      const stream = file.createReadStream({ decompress: false });
      signal.addEventListener("abort", () => stream.destroy(), { once: true });
      return stream;
    },
    close() {},
  };
}

const AZURE_RETRIES = { maxTries: 3, retryDelayInMs: 250, maxRetryDelayInMs: 2_000 };

type Sdk = typeof import("@azure/storage-blob");

/**
 * Opens a container of Azure Blob Storage.
 *
 * @param endpoint address of the account's blobs, unless it is the usual one: AZURE_STORAGE_SERVICE_ENDPOINT
 */
async function asStorage(
  path: CloudPath,
  credentials: CloudCredentials,
  sdks: CloudSdks,
  endpoint = "",
): Promise<CloudStorage> {
  const sdk = await importSdk("@azure/storage-blob", path.text, sdks.as);
  const { account, address } = addressOf(path, credentials, endpoint);
  const credential = await credentialOf(path, account, credentials, sdk, sdks);
  const service = new sdk.BlobServiceClient(address, credential, { retryOptions: AZURE_RETRIES });
  const container = service.getContainerClient(path.bucket);
  return {
    async list(prefix, { byFolder, from, signal }) {
      const options = { prefix, includeMetadata: true, abortSignal: signal };
      const where = from === undefined ? {} : { continuationToken: from };
      const pages = byFolder
        ? container.listBlobsByHierarchy("/", options).byPage(where)
        : container.listBlobsFlat(options).byPage(where);
      for await (const { segment, continuationToken } of pages) {
        const { blobPrefixes = [] } = segment as { blobPrefixes?: readonly { readonly name: string }[] };
        return {
          objects: segment.blobItems.map(objectOf),
          folders: blobPrefixes.map(({ name }) => name),
          next: continuationToken === "" ? undefined : continuationToken,
        };
      }
      return { objects: [], folders: [], next: undefined };
    },
    async download({ key, etag }, signal) {
      const options = { abortSignal: signal, conditions: { ifMatch: `"${etag}"` }, maxRetryRequests: 0 };
      const { readableStreamBody } = await container.getBlobClient(key).download(0, undefined, options);
      return readableStreamBody as Readable;
    },
    close() {},
  };
}

function objectOf(blob: import("@azure/storage-blob").BlobItem): CloudObject {
  const { name, properties, metadata } = blob;
  return {
    key: name,
    sizeBytes: properties.contentLength ?? 0,
    etag: properties.etag.replaceAll('"', ""),
    // Accounts with a hierarchical namespace have objects for directories.
    isFolder: name.endsWith("/") || metadata?.hdi_isfolder === "true",
  };
}

/** An account named in the credentials takes precedence over that of the path, as in Triton. */
function addressOf(
  { host }: CloudPath,
  { account_str }: CloudCredentials,
  endpoint: string,
): { readonly account: string; readonly address: string } {
  const [inPath = ""] = host.split(".");
  const account = account_str || inPath;
  const isUsual = /^[^.]+(\.blob(\.core\.windows\.net)?)?$/.test(host) || account !== inPath;
  return { account, address: endpoint || `https://${isUsual ? `${account}.blob.core.windows.net` : host}` };
}

async function credentialOf(
  { text }: CloudPath,
  account: string,
  { account_key, auth_type, client_id }: CloudCredentials,
  { AnonymousCredential, StorageSharedKeyCredential }: Sdk,
  sdks: CloudSdks,
) {
  if (auth_type === "managed_identity" || auth_type === "default") {
    const identity = await importSdk("@azure/identity", text, sdks.azureIdentity);
    if (auth_type === "default") return new identity.DefaultAzureCredential();
    return new identity.ManagedIdentityCredential(...(client_id ? [{ clientId: client_id }] : []));
  }
  if (auth_type && auth_type !== "key") {
    const text = `unknown auth_type '${auth_type}' of Azure Storage: expected key, managed_identity or default`;
    throw errorFor("INVALID_REPOSITORY", text);
  }
  return account_key ? new StorageSharedKeyCredential(account, account_key) : new AnonymousCredential();
}
