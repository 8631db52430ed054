import { TritonError } from "@tritonjs/protocol";

/** The parts of a cloud path. */
export interface CloudPath {
  /** The path for display, without redundant slashes. */
  readonly text: string;
  readonly scheme: "s3" | "gs" | "as";
  /** Server of S3 that the path names; storage account or host of Azure; otherwise empty. */
  readonly host: string;
  /** Bucket or container. */
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
