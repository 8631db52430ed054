import { TritonError } from "@tritonjs/protocol";
import { importUnbundled } from "../../unbundled.js";

/** The vendors' packages. Each is imported at the first use of a path of the vendor. */
export interface CloudSdks {
  readonly s3: () => Promise<typeof import("@aws-sdk/client-s3")>;
  readonly gs: () => Promise<typeof import("@google-cloud/storage")>;
  readonly as: () => Promise<typeof import("@azure/storage-blob")>;
  readonly azureIdentity: () => Promise<AzureIdentity>;
}

/** The part of `@azure/identity` that is used. */
export interface AzureIdentity {
  readonly DefaultAzureCredential: new () => AzureToken;
  readonly ManagedIdentityCredential: new (options?: { clientId: string }) => AzureToken;
}

type AzureToken = import("@azure/storage-blob").StorageSharedKeyCredential;

/** The packages that are installed. */
export const INSTALLED_SDKS: CloudSdks = {
  s3: () => importUnbundled("@aws-sdk/client-s3"),
  gs: () => importUnbundled("@google-cloud/storage"),
  as: () => importUnbundled("@azure/storage-blob"),
  azureIdentity: () => importUnbundled("@azure/identity"),
};

/**
 * Imports a package of a vendor.
 *
 * @throws TritonError UNAVAILABLE with the command that installs the package, when it cannot be imported
 */
export async function importSdk<T>(packageName: string, path: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const why = TritonError.from(cause).message.split("\n")[0];
    const text = `cannot load the package ${packageName}, which ${path} needs (${why}): npm install ${packageName}`;
    throw new TritonError("UNAVAILABLE", text, { reason: "PACKAGE_NOT_INSTALLED", cause });
  }
}
