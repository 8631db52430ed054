import type { CloudCredentials } from "./cloud-credentials.js";
import type { CloudPath } from "./cloud-path.js";
import type { CloudStorage } from "./cloud-storage.js";
import { type CloudSdks, importSdk } from "./import-sdk.js";

/** Without these limits, the SDK retries for ten minutes. */
const RETRIES = { autoRetry: true, maxRetries: 2, maxRetryDelay: 2, totalTimeout: 20 };

/** The usual address. The SDK looks for no credentials when an address is given. */
const WITHOUT_CREDENTIALS = { apiEndpoint: "https://storage.googleapis.com/" };

/** Opens a bucket of Google Cloud Storage. */
export async function gsStorage(
  { text, bucket }: CloudPath,
  { path = "" }: CloudCredentials,
  sdks: CloudSdks,
): Promise<CloudStorage> {
  const { Storage } = await importSdk("@google-cloud/storage", text, sdks.gs);
  const options = { retryOptions: RETRIES, ...(path === "" ? {} : { keyFilename: path }) };
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
