import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { Readable } from "node:stream";
import { setImmediate as turnOfTheEventLoop } from "node:timers/promises";
import { Log, realClock } from "@tritonjs/core/extension";
import { TritonError } from "@tritonjs/protocol";
import { VirtualClock } from "@tritonjs/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  type CloudSdks,
  type CloudStorage,
  findCredentials,
  INSTALLED_SDKS,
  isCloudPath,
  MAX_SILENCE_MS,
  openStorage,
  parseCloudPath,
  shownKey,
  withSilenceLimit,
} from "../../src/directories/cloud-storage.js";
import { CloudSource } from "../../src/directories/repository-source.js";
import { type ModelLoader, RepositoryChanges } from "../../src/loading/repository-changes.js";
import type { RepositoryState } from "../../src/loading/repository-poller.js";

describe("cloud credentials", () => {
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
    await expect(fromFile("s3://other", file)).rejects.toThrow(
      "Cannot match credential for path  s3://other",
    );
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
});

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

const log = new Log({ error() {}, warn() {}, info() {}, debug() {} });

/** A storage with objects by key, all of the same size. */
function storageOf(keys: readonly string[], download?: CloudStorage["download"]): CloudStorage {
  return {
    list: async (prefix) => ({
      objects: keys
        .filter((key) => key.startsWith(prefix))
        .map((key) => ({ key, sizeBytes: 4, etag: "1", isFolder: key.endsWith("/") })),
      folders: [],
      next: undefined,
    }),
    download: download ?? (async () => Readable.from([Buffer.from("data")])),
    close() {},
  };
}

const sourceOf = (storage: CloudStorage, clock = realClock) =>
  new CloudSource(parseCloudPath("s3://bucket/models"), clock, log, async () => storage);

describe("cloud source bad objects", () => {
  it.each([
    "models/bad/../good/config.pbtxt",
    "models/bad/1/../../../x",
    "models/bad//etc/passwd",
    "models/bad/./x",
    "models/bad/..\\x",
    "models/bad/1\0",
  ])("the key %j makes its own model fail and no other", async (key) => {
    const source = sourceOf(storageOf([key, "models/bad/config.pbtxt", "models/good/config.pbtxt"]));
    await source.refresh();
    expect(await source.names()).toEqual(["bad", "good"]);
    await expect(source.open("bad")).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: expect.stringContaining(
        "has an invalid path in the directory of model 'bad': rename or remove it",
      ),
    });
    const { root } = await source.open("good");
    expect(await readdir(root, { recursive: true })).toEqual(["good", join("good", "config.pbtxt")]);
    await source.close();
  });

  it("keys beside the models and keys with invalid names are not models", async () => {
    const keys = [
      "models/",
      "models/../up/x",
      "models//x",
      "models/./x",
      "models/.git/x",
      "models/a",
      "other/m/x",
    ];
    const source = sourceOf(storageOf(keys));
    await source.refresh();
    expect(await source.names()).toEqual([]);
    await source.refresh(["..", ".", "", "a/b"]);
    expect(await source.has("..")).toBe(false);
    await source.close();
  });

  it("an object that is both a file and a folder makes its model fail", async () => {
    const source = sourceOf(storageOf(["models/m/1", "models/m/1/weights.bin"]));
    await source.refresh();
    await expect(source.open("m")).rejects.toThrow(/^Failed to get object at s3:\/\/bucket\/models\/m\/1/);
    await source.close();
  });

  it("an object whose length differs from the listed one is rejected", async () => {
    const source = sourceOf(storageOf(["models/m/x"], async () => Readable.from([Buffer.from("da")])));
    await source.refresh();
    await expect(source.open("m")).rejects.toThrow(
      "Failed to get object at s3://bucket/models/m/x: expected 4 bytes, got 2",
    );
    await source.close();
  });

  it("at most eight objects are copied at once, and none after one has failed", async () => {
    let running = 0;
    let most = 0;
    const keys = Array.from({ length: 40 }, (_, i) => `models/m/part-${i}`);
    let asked = 0;
    let letGo: () => void = () => {};
    const eight = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const source = sourceOf(
      storageOf(keys, async () => {
        const turn = ++asked;
        most = Math.max(most, ++running);
        // A ninth download would start in the turns after the eighth.
        if (turn === 8) {
          for (let turns = 0; turns < 100; turns++) await turnOfTheEventLoop();
          letGo();
        }
        await eight;
        running--;
        if (turn === 12) throw Object.assign(new Error("no"), { statusCode: 403 });
        return Readable.from([Buffer.from("data")]);
      }),
    );
    await source.refresh();
    await expect(source.open("m")).rejects.toThrow("error message: no, HTTP status 403");
    expect(most).toBe(8);
    expect(asked).toBeLessThan(30);
    await source.close();
  });

  it("work that shows no progress for half a minute is stopped, whether it heeds the signal or not", async () => {
    const clock = new VirtualClock();
    const { signal } = new AbortController();
    const waiting = withSilenceLimit({ clock, signal }, () => new Promise(() => {}));
    const alive = withSilenceLimit({ clock, signal }, async (_, sign) => {
      await clock.advance(MAX_SILENCE_MS - 1);
      sign();
      await clock.advance(MAX_SILENCE_MS - 1);
      return "done";
    });
    await expect(waiting).rejects.toEqual(
      new TritonError("UNAVAILABLE", "no answer for 30 seconds", { reason: "STORAGE_TIMEOUT" }),
    );
    expect(await alive).toBe("done");
  });

  it("work stops at once when its signal aborts", async () => {
    const stop = new AbortController();
    const work = withSilenceLimit({ clock: realClock, signal: stop.signal }, () => new Promise(() => {}));
    stop.abort(new TritonError("UNAVAILABLE", "the server is closing"));
    await expect(work).rejects.toThrow("the server is closing");
    await expect(
      withSilenceLimit({ clock: realClock, signal: stop.signal }, async () => "too late"),
    ).rejects.toThrow("the server is closing");
  });
});

const NONE = new Set<never>();

/** A repository with one model, which changes whenever a test asks for the next copy. */
function changingModel() {
  const state = { etag: 1, exists: true };
  const source = new CloudSource(parseCloudPath("gs://bucket"), realClock, log, async () => ({
    list: async () => ({
      objects: state.exists
        ? [{ key: "m/1/x", sizeBytes: 1, etag: String(state.etag), isFolder: false }]
        : [],
      folders: [],
      next: undefined,
    }),
    download: async () => Readable.from([Buffer.from("x")]),
    close() {},
  }));
  const next = async () => {
    state.etag++;
    await source.refresh();
    return (await source.open("m")).copy!;
  };
  return { state, source, next };
}

describe("cloud source copies", () => {
  it("the newest copy stays, and other copies are removed once they are neither known nor held", async () => {
    const { source, next } = changingModel();
    const [held, known, loose, newest] = [await next(), await next(), await next(), await next()];
    held.retain();
    source.sweep(new Set([known]));
    await expect.poll(() => existsSync(loose.root)).toBe(false);
    expect([held, known, newest].map(({ directory }) => existsSync(directory))).toEqual([true, true, true]);
    await held.release();
    expect(existsSync(held.root)).toBe(false);
    source.sweep(NONE);
    await expect.poll(() => existsSync(known.root)).toBe(false);
    await source.close();
    expect(existsSync(newest.root)).toBe(false);
  });

  it("the copy of a removed model is deleted, and closing also deletes held copies", async () => {
    const { source, state, next } = changingModel();
    const gone = await next();
    state.exists = false;
    await source.refresh();
    expect(await source.has("m")).toBe(false);
    source.sweep(NONE);
    await expect.poll(() => existsSync(gone.root)).toBe(false);
    state.exists = true;
    const held = await next();
    held.retain();
    await source.close();
    expect(existsSync(held.root)).toBe(false);
    await held.release();
  });

  it("no copy is deleted while a change is in progress", async () => {
    const { source, next } = changingModel();
    const state: Pick<RepositoryState, "sources" | "copies"> = { sources: [source], copies: () => NONE };
    const changes = new RepositoryChanges(state as RepositoryState, {} as ModelLoader);
    const first = await next();
    let end: () => void = () => {};
    const change = changes.keepingCopies(() => new Promise<void>((resolve) => (end = resolve)));
    await next();
    await changes.keepingCopies(async () => {});
    const dropped = vi.spyOn(first, "drop");
    expect(dropped).not.toHaveBeenCalled();
    expect(existsSync(first.directory)).toBe(true);
    end();
    await change;
    expect(dropped).toHaveBeenCalledOnce();
    await source.close();
  });

  it("a model is copied once when several callers ask for it at the same time", async () => {
    const { source } = changingModel();
    await Promise.all([source.refresh(["m"]), source.refresh(), source.refresh(["m"])]);
    const { root } = await source.open("m");
    expect(root).toMatch(/[\\/]1$/);
    await source.close();
  });

  it("what a failed copy has downloaded is not downloaded again", async () => {
    const downloads: string[] = [];
    const objects = ["a", "b", "c"].map((name) => ({
      key: `m/1/${name}`,
      sizeBytes: 1,
      etag: name,
      isFolder: false,
    }));
    let isRefused = true;
    const source = new CloudSource(parseCloudPath("gs://bucket"), realClock, log, async () => ({
      list: async () => ({ objects, folders: [], next: undefined }),
      download: async ({ key }) => {
        downloads.push(key);
        if (!isRefused || !key.endsWith("c")) return Readable.from([Buffer.from("x")]);
        throw Object.assign(new Error("Forbidden"), { statusCode: 403 });
      },
      close() {},
    }));
    // The refusal of `c` may stop downloads of the others in the first attempts.
    await expect
      .poll(async () => {
        const before = downloads.length;
        await source.refresh();
        await expect(source.open("m")).rejects.toThrow("Forbidden");
        return downloads.slice(before);
      })
      .toEqual(["m/1/c"]);
    isRefused = false;
    const before = downloads.length;
    await source.refresh();
    expect(downloads.slice(before)).toEqual(["m/1/c"]);
    const { directory, root } = await source.open("m");
    expect(await readdir(join(directory, "1"))).toEqual(["a", "b", "c"]);
    expect(await readdir(dirname(root))).toEqual([basename(root)]);
    await source.close();
  });
});

describe("open storage", () => {
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
});
