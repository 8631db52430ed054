import { expect, it } from "vitest";
import {
  type CloudSdks,
  INSTALLED_SDKS,
  openStorage,
  parseCloudPath,
} from "../../../src/repository/cloud-storage.js";

const absent = async () => {
  throw new Error("Cannot find package\nImported from somewhere");
};

const NONE: CloudSdks = { s3: absent, gs: absent, as: absent, azureIdentity: absent };

it.each([
  ["s3://bucket/models", "@aws-sdk/client-s3"],
  ["gs://bucket/models", "@google-cloud/storage"],
  ["as://account/container", "@azure/storage-blob"],
])("%s fails without its package and names the command that installs it", async (path, name) => {
  await expect(openStorage(parseCloudPath(path), {}, NONE)).rejects.toMatchObject({
    code: "UNAVAILABLE",
    message: `cannot load the package ${name}, which ${path} needs (Cannot find package): npm install ${name}`,
  });
});

it("Azure identities need a package of their own and are created as the environment says", async () => {
  const path = parseCloudPath("as://account/container");
  const open = (environment: NodeJS.ProcessEnv, azureIdentity: CloudSdks["azureIdentity"]) =>
    openStorage(path, environment, { ...INSTALLED_SDKS, azureIdentity });
  const managed = { AZURE_STORAGE_AUTH_TYPE: "managed_identity", AZURE_STORAGE_CLIENT_ID: "me" };
  await expect(open(managed, absent)).rejects.toThrow("npm install @azure/identity");

  const made: unknown[] = [];
  class Token {
    constructor(options?: unknown) {
      made.push(options);
    }
    getToken() {}
  }
  const identity = { DefaultAzureCredential: Token, ManagedIdentityCredential: Token } as never;
  for (const environment of [
    managed,
    { ...managed, AZURE_STORAGE_CLIENT_ID: "" },
    { AZURE_STORAGE_AUTH_TYPE: "default" },
  ]) {
    (await open(environment, async () => identity)).close();
  }
  expect(made).toEqual([{ clientId: "me" }, undefined, undefined]);
  await expect(open({ AZURE_STORAGE_AUTH_TYPE: "magic" }, absent)).rejects.toThrow(
    "unknown auth_type 'magic'",
  );
});
