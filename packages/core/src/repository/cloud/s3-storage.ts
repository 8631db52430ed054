import type { Readable } from "node:stream";
import type { CloudCredentials } from "./cloud-credentials.js";
import { ObjectChanged } from "./cloud-error.js";
import type { CloudPath } from "./cloud-path.js";
import type { CloudStorage } from "./cloud-storage.js";
import { type CloudSdks, importSdk } from "./import-sdk.js";

const CONNECTION_TIMEOUT_MS = 5_000;

/** Opens a bucket of Amazon S3, or of a server that speaks its protocol. */
export async function s3Storage(
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
