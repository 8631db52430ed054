import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { Triton } from "@tritonjs/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { STORIES } from "../support/stories.js";

let folder: string;
/** A snapshot as Hugging Face's cache has it: each file is a link to a blob. */
let snapshot: string;
let version: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "linked-files-"));
  snapshot = join(folder, "hub", "models--org--stories", "snapshots", "abc");
  const blobs = join(snapshot, "..", "..", "blobs");
  mkdirSync(snapshot, { recursive: true });
  mkdirSync(blobs);
  for (const name of readdirSync(STORIES)) {
    cpSync(join(STORIES, name), join(blobs, `blob-of-${name}`));
    symlinkSync(`../../blobs/blob-of-${name}`, join(snapshot, name));
  }
  const model = join(folder, "models", "stories");
  mkdirSync(model, { recursive: true });
  writeFileSync(join(model, "config.pbtxt"), 'backend: "text_generation"');
  version = join(model, "1");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Loads the repository. Returns the reason why the model is not ready, or "ready". */
async function load(linked?: string): Promise<string> {
  await using triton = new Triton({
    modelRepository: join(folder, "models"),
    exitOnError: false,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    ...(linked !== undefined && { backendConfig: { text_generation: { "linked-directories": linked } } }),
  });
  await triton.serve({ frontends: [] });
  const row = (await triton.service.repositoryIndex(false)).find(({ name }) => name === "stories");
  return row!.state === "READY" ? "ready" : String(row!.reason);
}

const refused = /leads out of .* through a symbolic link: .* linked-directories/;

it("a repository refuses a link from a version to a directory outside of it", async () => {
  symlinkSync(snapshot, version);
  expect(await load()).toMatch(refused);
});

it.each(["model.onnx", "tokenizer.json", "tokenizer_config.json"])(
  "a repository refuses a link from the file %s to a file outside of it",
  async (name) => {
    cpSync(STORIES, version, { recursive: true });
    rmSync(join(version, name));
    symlinkSync(join(snapshot, name), join(version, name));
    expect(await load()).toMatch(refused);
  },
);

it("a repository refuses a link behind a link to a directory inside of it", async () => {
  cpSync(STORIES, version, { recursive: true });
  const shared = join(folder, "models", "shared");
  mkdirSync(shared);
  symlinkSync(join(snapshot, "model.onnx"), join(shared, "model.onnx"));
  symlinkSync("../../shared", join(version, "onnx"));
  expect(await load()).toMatch(refused);
});

it("a snapshot of Hugging Face's cache loads when the setting linked-directories names the cache", async () => {
  symlinkSync(snapshot, version);
  expect(await load([join(folder, "other"), join(folder, "hub")].join(delimiter))).toBe("ready");
});

it("linked-directories must hold the blobs as well as the links", async () => {
  symlinkSync(snapshot, version);
  expect(await load(snapshot)).toMatch(refused);
});

it("a directory whose links form a circle loads", async () => {
  cpSync(STORIES, version, { recursive: true });
  symlinkSync(".", join(version, "again"));
  expect(await load()).toBe("ready");
});
