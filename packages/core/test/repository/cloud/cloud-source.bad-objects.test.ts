import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setImmediate as turnOfTheEventLoop } from "node:timers/promises";
import { TritonError } from "@tritonjs/protocol";
import { expect, it } from "vitest";
import { Log } from "../../../src/observe/log.js";
import type { CloudStorage } from "../../../src/repository/cloud-storage.js";
import { MAX_SILENCE_MS, parseCloudPath, withSilenceLimit } from "../../../src/repository/cloud-storage.js";
import { CloudSource } from "../../../src/repository/repository-source.js";
import { realClock, VirtualClock } from "../../../src/system/clock.js";

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
