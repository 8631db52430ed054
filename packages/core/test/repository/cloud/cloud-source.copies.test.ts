import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Readable } from "node:stream";
import { expect, it, vi } from "vitest";
import { Log } from "../../../src/observe/log.js";
import { parseCloudPath } from "../../../src/repository/cloud-storage.js";
import type { ModelLoader } from "../../../src/repository/repository-changes.js";
import { RepositoryChanges } from "../../../src/repository/repository-changes.js";
import type { RepositoryState } from "../../../src/repository/repository-poller.js";
import { CloudSource } from "../../../src/repository/repository-source.js";
import { realClock } from "../../../src/system/clock.js";

const log = new Log({ error() {}, warn() {}, info() {}, debug() {} });
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
