import type { Readable } from "node:stream";
import { TritonError } from "@tritonjs/protocol";
import type { CloudCredentials } from "./cloud-credentials.js";
import type { CloudPath } from "./cloud-path.js";
import type { CloudObject, CloudStorage } from "./cloud-storage.js";
import { type CloudSdks, importSdk } from "./import-sdk.js";

const RETRIES = { maxTries: 3, retryDelayInMs: 250, maxRetryDelayInMs: 2_000 };

type Sdk = typeof import("@azure/storage-blob");

/**
 * Opens a container of Azure Blob Storage.
 *
 * @param endpoint address of the account's blobs, unless it is the usual one: AZURE_STORAGE_SERVICE_ENDPOINT
 */
export async function asStorage(
  path: CloudPath,
  credentials: CloudCredentials,
  sdks: CloudSdks,
  endpoint = "",
): Promise<CloudStorage> {
  const sdk = await importSdk("@azure/storage-blob", path.text, sdks.as);
  const { account, address } = addressOf(path, credentials, endpoint);
  const credential = await credentialOf(path, account, credentials, sdk, sdks);
  const service = new sdk.BlobServiceClient(address, credential, { retryOptions: RETRIES });
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
    throw new TritonError("INVALID_ARG", text, { reason: "INVALID_REPOSITORY" });
  }
  return account_key ? new StorageSharedKeyCredential(account, account_key) : new AnonymousCredential();
}
