import { asStorage } from "./as-storage.js";
import { findCredentials } from "./cloud-credentials.js";
import type { CloudPath } from "./cloud-path.js";
import type { CloudStorage } from "./cloud-storage.js";
import { gsStorage } from "./gs-storage.js";
import { type CloudSdks, INSTALLED_SDKS } from "./import-sdk.js";
import { s3Storage } from "./s3-storage.js";

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
