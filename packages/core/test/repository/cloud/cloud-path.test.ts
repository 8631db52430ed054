import { describe, expect, it } from "vitest";
import { isCloudPath, parseCloudPath, shownKey } from "../../../src/repository/cloud-storage.js";

describe("parseCloudPath", () => {
  it.each([
    ["s3://bucket", "s3://bucket", "", "bucket", ""],
    ["s3://bucket/a//b/", "s3://bucket/a/b", "", "bucket", "a/b/"],
    ["s3://host:9000/bucket/a", "s3://host:9000/bucket/a", "http://host:9000", "bucket", "a/"],
    ["s3://http://host:9000/bucket", "s3://http://host:9000/bucket", "http://host:9000", "bucket", ""],
    ["s3://https://host:443/bucket/a", "s3://https://host:443/bucket/a", "https://host:443", "bucket", "a/"],
    ["s3://https://host/bucket", "s3://https://host/bucket", "https://host", "bucket", ""],
    ["gs://bucket/größe", "gs://bucket/größe", "", "bucket", "größe/"],
    ["as://account/container/a", "as://account/container/a", "account", "container", "a/"],
    [
      "as://account.blob.core.windows.net/c?sig=x",
      "as://account.blob.core.windows.net/c",
      "account.blob.core.windows.net",
      "c",
      "",
    ],
  ])("parses %s", (path, text, host, bucket, prefix) => {
    expect(isCloudPath(path)).toBe(true);
    const parsed = parseCloudPath(path);
    expect(parsed).toMatchObject({ text, host, bucket, prefix });
    expect(parseCloudPath(text)).toEqual(parsed);
    expect(shownKey(parsed, `${prefix}m/1`)).toBe(`${text}/m/1`);
  });

  it.each([
    "s3://",
    "s3:///",
    "s3://host:9000",
    "s3://https://host",
    "gs://",
    "gs://http://a/b",
    "as://account",
    "as://",
  ])("rejects %s, which has no bucket", (path) => {
    expect(() => parseCloudPath(path)).toThrow(`No bucket name found in path: ${path}`);
  });

  it("leaves local directories alone", () => {
    for (const path of ["/s3://a", "models", "S3://bucket", "file:///models"])
      expect(isCloudPath(path)).toBe(false);
  });
});
