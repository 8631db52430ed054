import { TritonError } from "@tritonjs/protocol";

/** A path in a cloud, taken apart. */
export interface CloudPath {
  /** The path as it is shown: without slashes that mean nothing. */
  readonly text: string;
  readonly scheme: "s3" | "gs" | "as";
  /** Server of S3 that the path names; storage account or host of Azure; empty where there is none. */
  readonly host: string;
  /** Bucket, or container. */
  readonly bucket: string;
  /** What keys of the repository begin with: empty, or with a slash at its end. */
  readonly prefix: string;
}

/** True for `s3://`, `gs://` and `as://`. */
export function isCloudPath(path: string): boolean {
  return /^(s3|gs|as):\/\//.test(path);
}

/**
 * Takes a cloud path apart: `s3://bucket/path`, `s3://host:port/bucket/path`, `s3://https://host:port/bucket/path`,
 * `gs://bucket/path`, `as://account/container/path`, `as://account.blob.core.windows.net/container/path`.
 *
 * @throws TritonError INVALID_ARG for one without a bucket
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
    throw new TritonError(
      "INVALID_ARG",
      `No bucket name found in path: ${path} (expected a path as ${form})`,
      { reason: "INVALID_REPOSITORY" },
    );
  }
  const address = scheme === "s3" && hasHost ? `${protocol || "http://"}${host}` : host;
  const shown = scheme === "s3" && hasHost ? `${protocol}${host}` : host;
  const text = `${scheme}://${[...(hasHost ? [shown] : []), bucket, ...folders].join("/")}`;
  return { text, scheme, host: address, bucket, prefix: folders.map((folder) => `${folder}/`).join("") };
}
