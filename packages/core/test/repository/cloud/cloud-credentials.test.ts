import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findCredentials, parseCloudPath } from "../../../src/repository/cloud-storage.js";

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tritonjs-"));
});

afterAll(() => rm(folder, { recursive: true }));

async function fromFile(path: string, content: string) {
  const file = join(folder, "credentials.json");
  await writeFile(file, content);
  return findCredentials(parseCloudPath(path), {
    TRITON_CLOUD_CREDENTIAL_PATH: file,
    AWS_ACCESS_KEY_ID: "not this",
  });
}

it("credentials are read from the environment under Triton's names", async () => {
  const environment = {
    AWS_ACCESS_KEY_ID: "id",
    AWS_SECRET_ACCESS_KEY: "secret",
    AWS_DEFAULT_REGION: "eu-west-1",
    GOOGLE_APPLICATION_CREDENTIALS: "/key.json",
    AZURE_STORAGE_ACCOUNT: "account",
    AZURE_STORAGE_AUTH_TYPE: "managed_identity",
  };
  const find = (path: string) => findCredentials(parseCloudPath(path), environment);
  expect(await find("s3://bucket")).toEqual({
    key_id: "id",
    secret_key: "secret",
    session_token: "",
    region: "eu-west-1",
    profile: "",
  });
  expect(await find("gs://bucket")).toEqual({ path: "/key.json" });
  expect(await find("as://account/container")).toEqual({
    account_str: "account",
    account_key: "",
    auth_type: "managed_identity",
    client_id: "",
  });
});

it("credentials are read from a file if one is named, using the longest matching path prefix", async () => {
  const file = JSON.stringify({
    gs: { "": "/all.json", "gs://b": "/b.json", "gs://bucket/models": "/models.json" },
    s3: { "s3://bucket": { key_id: "id", secret_key: 5 } },
  });
  expect(await fromFile("gs://bucket/models/a", file)).toEqual({ path: "/models.json" });
  expect(await fromFile("gs://bucket", file)).toEqual({ path: "/b.json" });
  expect(await fromFile("gs://other", file)).toEqual({ path: "/all.json" });
  expect(await fromFile("s3://bucket/x", file)).toMatchObject({ key_id: "id", secret_key: "" });
  await expect(fromFile("s3://other", file)).rejects.toThrow("Cannot match credential for path  s3://other");
  await expect(fromFile("as://a/c", file)).rejects.toThrow("Cannot match credential for path  as://a/c");
});

it("an unreadable credentials file fails with an error that does not show its content", async () => {
  await expect(fromFile("s3://bucket", "secret-key")).rejects.toThrow(
    /credentials.json \(TRITON_CLOUD_CREDENTIAL_PATH\): it is not JSON$/,
  );
  const missing = { TRITON_CLOUD_CREDENTIAL_PATH: join(folder, "nowhere") };
  await expect(findCredentials(parseCloudPath("s3://bucket"), missing)).rejects.toThrow(
    /nowhere \(TRITON_CLOUD_CREDENTIAL_PATH\): ENOENT/,
  );
  await expect(fromFile("s3://bucket", "null")).rejects.toThrow("Cannot match credential");
});
