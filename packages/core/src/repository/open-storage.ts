import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { importUnbundled, notLoaded } from "../optional-packages.js";
import { type CloudObject, type CloudPath, type CloudStorage, ObjectChanged } from "./cloud-storage.js";

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
  s3: () => importUnbundled("@aws-sdk/client-s3"),
  gs: () => importUnbundled("@google-cloud/storage"),
  as: () => importUnbundled("@azure/storage-blob"),
  azureIdentity: () => importUnbundled("@azure/identity"),
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
