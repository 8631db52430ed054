import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { textGeneration } from "@tritonjs/llm";
import { Tensor } from "@tritonjs/protocol";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CachedPrefix, KvLayout, KvSlice } from "../../src/decoder/forward-pass.js";
import { BLOCK_TOKENS, KeptPrefixes } from "../../src/decoder/kept-prefixes.js";
import { PrefixDirectory } from "../../src/prefix-directory.js";
import { STORIES } from "../support/stories.js";
import { StoryTeller } from "../support/story-teller.js";

let folder: string;
let tellers: StoryTeller[];
let warnings: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "prefixes-"));
  tellers = [];
  warnings = [];
});
afterEach(async () => {
  for (const teller of tellers) await teller.close();
  rmSync(folder, { recursive: true, force: true });
});

const STEP = 16;
/** Runs of a prompt's end, which is shorter than a block. */
const REST = Math.ceil(BLOCK_TOKENS / STEP);
const PROMPT = "Once there was a red dog who lived in a big house with Tom and Mia. ".repeat(12);

/** Starts a server, which computes a prompt in steps of 16 tokens. */
function start(options = {}): StoryTeller {
  const onWarning = (message: string) => void warnings.push(message);
  const teller = new StoryTeller({ prefixDirectory: folder, prefillTokens: STEP, onWarning, ...options });
  tellers.push(teller);
  return teller;
}

/** A text after a prompt, and the runs of the graph that it took. */
async function tell(teller: StoryTeller, prompt = PROMPT) {
  const runs = () => teller.metric("tritonjs_generation_runs");
  const before = (await runs()) || 0;
  const text = await teller.text({ prompt, sampling: { max_tokens: 4 } });
  await expect.poll(() => teller.metric("tritonjs_generation_running")).toBe(0);
  return { text, runs: (await runs()) - before };
}

async function tellOnce(prompt = PROMPT, options = {}) {
  const teller = start(options);
  const told = await tell(teller, prompt);
  await teller.close();
  return told;
}

/** The files and the text of a server that computed the prompt, which are computed once. */
let record: Promise<{ readonly told: Awaited<ReturnType<typeof tell>>; readonly files: string }> | undefined;
afterAll(async () => rmSync((await record)?.files ?? "", { recursive: true, force: true }));

async function recorded() {
  record ??= (async () => {
    const told = await tellOnce();
    const copy = mkdtempSync(join(tmpdir(), "recorded-prefixes-"));
    cpSync(folder, copy, { recursive: true });
    return { told, files: copy };
  })();
  const { told, files } = await record;
  cpSync(files, folder, { recursive: true });
  return told;
}

const files = () => readdirSync(folder).sort();

describe("a server with a directory of prefixes", () => {
  it("computes only the rest of a prompt that an earlier server has computed, and writes the same text", async () => {
    const first = await recorded();
    expect(files().length).toBeGreaterThan(2);
    expect(files().every((name) => /^[0-9a-f]{64}\.kv$/.test(name))).toBe(true);
    expect(statSync(join(folder, files()[0]!)).mode & 0o077).toBe(0);
    const teller = start();
    const second = await tell(teller);
    expect(second.text).toBe(first.text);
    expect(second.runs).toBeLessThanOrEqual(REST + 3);
    expect(first.runs).toBeGreaterThan(4 * REST);
    const other = `${PROMPT.slice(0, PROMPT.length / 2)}The cat came home. `;
    const alone = await tellOnce(other, { prefixDirectory: undefined });
    const begun = await tell(teller, other);
    expect(begun.text).toBe(alone.text);
    expect(begun.runs).toBeLessThan(alone.runs / 2);
    expect(warnings).toEqual([]);
  });

  it("ignores spoiled files with one line, and writes them again", async () => {
    const first = await recorded();
    for (const name of files()) truncateSync(join(folder, name), statSync(join(folder, name)).size - 7);
    expect(await tellOnce()).toEqual(first);
    expect(warnings).toEqual([expect.stringMatching(/got \d+ bytes instead of \d+$/)]);
    const third = await tellOnce();
    expect(third.text).toBe(first.text);
    expect(third.runs).toBeLessThan(first.runs / 2);
    expect(warnings.length).toBe(1);
  });

  it("leaves files of other names alone, and says so once", async () => {
    writeFileSync(join(folder, "notes.txt"), "mine");
    await tellOnce();
    expect(readFileSync(join(folder, "notes.txt"), "utf8")).toBe("mine");
    expect(warnings.length).toBe(1);
    expect(warnings[0]).toBe(
      `model 'stories': the directory of prefixes ${folder} has a file of other names, left alone`,
    );
  });

  it("answers while the directory cannot be written", async () => {
    const first = await recorded();
    const teller = start();
    await tell(teller);
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
    writeFileSync(folder, "");
    const second = await tell(teller, `A cat. ${PROMPT}`);
    expect(second.text.length).toBeGreaterThan(0);
    expect((await tell(teller)).text).toBe(first.text);
    await teller.close();
    expect(warnings.length).toBeLessThanOrEqual(2);
    expect(warnings.join()).toMatch(/cannot (read|write) a file of prefixes: .*ENOTDIR/);
  });

  it("is cancelled, closed and asked by many at once without a trace", async () => {
    const { text } = await recorded();
    const teller = start();
    const leaving = new AbortController();
    const gone = teller.all({ prompt: PROMPT, sampling: { max_tokens: 4 }, signal: leaving.signal });
    const texts = Promise.all(
      Array.from({ length: 16 }, () => teller.text({ prompt: PROMPT, sampling: { max_tokens: 4 } })),
    );
    leaving.abort();
    await gone.catch(() => {});
    expect(await texts).toEqual(Array(16).fill(text));
    await teller.close();
    expect(warnings).toEqual([]);
  });
});

it("refuses options of the directory that cannot be", async () => {
  const open = (options: object) => () => textGeneration({ directory: STORIES, ...options }).describe!();
  expect(open({ prefixDirectory: "" })).toThrow('prefixDirectory: expected the path of a directory, got ""');
  expect(open({ prefixDirectory: folder, prefixCache: false })).toThrow(
    "expected prefixCache not to be false",
  );
  expect(open({ prefixDirectory: folder, batchInvariant: true })).toThrow("expected no batchInvariant");
  expect(open({ prefixDirectory: folder, prefixDirectoryBytes: 0 })).toThrow(
    "prefixDirectoryBytes: expected an integer",
  );
  const file = join(folder, "file");
  writeFileSync(file, "");
  const failed = start({ prefixDirectory: file });
  await expect(failed.text({ prompt: "A" })).rejects.toThrow(
    `cannot keep prefixes in ${file}: expected a directory`,
  );
});

describe("the files of prefixes", () => {
  const layout = (datatype: "FP32" | "FP16"): KvLayout => ({
    datatype,
    layers: [
      { input: "a", output: "a", heads: 2, size: 3 },
      { input: "b", output: "b", heads: 1, size: 5 },
    ],
  });
  /** A slice that lies in the middle of a block of two rows. */
  function computed(tokens: readonly number[], datatype: "FP32" | "FP16"): CachedPrefix {
    const width = tokens.length + 9;
    const tensors = layout(datatype).layers.map(({ heads, size }, layer) => {
      const length = 2 * heads * width * size;
      const values = Array.from({ length }, (_, i) => (i * 7 + layer) % 1000);
      const elements = datatype === "FP32" ? Float32Array.from(values) : Uint16Array.from(values);
      return Tensor.fromElements(datatype, [2, heads, width, size], elements);
    });
    const block = { tensors, rows: 2, width };
    return { tokens, past: { block, row: 1, start: 4, length: tokens.length }, uses: 0 };
  }
  /** Keys and values of a slice, by layer, head and column. */
  function valuesOf(
    { block, row, start, length }: KvSlice,
    datatype: "FP32" | "FP16",
    count = length,
  ): number[][] {
    return layout(datatype).layers.flatMap(({ heads, size }, layer) =>
      Array.from({ length: heads }, (_, head) => {
        const from = ((row * heads + head) * block.width + start) * size;
        return [...(block.tensors[layer]!.elements as Float32Array).slice(from, from + count * size)];
      }),
    );
  }
  const tokens = Array.from({ length: 150 }, (_, i) => i * 3);
  const keep = async (model: string, datatype: "FP32" | "FP16", ...entries: CachedPrefix[]) => {
    const directory = await PrefixDirectory.open(folder, 100_000, (text) => void warnings.push(text));
    return new KeptPrefixes(directory, {
      layout: layout(datatype),
      model,
      cache: { entries },
      isBusy: () => false,
    });
  };

  it.each(["FP32", "FP16"] as const)("give back keys and values of %s bit by bit", async (datatype) => {
    const prefix = computed(tokens, datatype);
    const writer = await keep("a", datatype, prefix);
    await writer.save();
    const found = await (await keep("a", datatype)).load(tokens, 0);
    expect(found).toMatchObject({ length: 144, start: 0, row: 0 });
    expect(valuesOf(found!, datatype)).toEqual(valuesOf(prefix.past, datatype, 144));
  });

  it.each([
    ["cut", (path: string) => truncateSync(path, statSync(path).size - 7), /got \d+ bytes instead of \d+$/],
    ["empty", (path: string) => writeFileSync(path, ""), /got another file$/],
    ["changed", (path: string) => flip(path, -1), /got a wrong checksum$/],
    ["of a later format", (path: string) => flip(path, 8), /got version \d+ of the format instead of 1$/],
    [
      "another prefix's",
      (path: string, other: Buffer) => writeFileSync(path, other),
      /got the prefix of another name$/,
    ],
  ])("that are %s are ignored with one line, and written again", async (_, spoil, line) => {
    const prefix = computed(tokens, "FP32");
    await (await keep("a", "FP32", prefix)).save();
    const paths = files().map((name) => join(folder, name));
    const contents = paths.map((path) => readFileSync(path));
    for (const [i, path] of paths.entries()) spoil(path, contents.at(i - 1)!);
    const second = await keep("a", "FP32", prefix);
    expect(await second.load(tokens, 0)).toBeUndefined();
    expect(warnings).toEqual([expect.stringMatching(line)]);
    expect(warnings[0]).toContain(`ignored ${folder}`);
    await second.save();
    expect((await (await keep("a", "FP32")).load(tokens, 0))?.length).toBe(144);
    expect(warnings.length).toBe(1);
  });

  it("belong to one model, one data type and one beginning", async () => {
    const writer = await keep("a", "FP32", computed(tokens, "FP32"));
    await writer.save();
    expect(await (await keep("b", "FP32")).load(tokens, 0)).toBeUndefined();
    expect(await (await keep("a", "FP16")).load(tokens, 0)).toBeUndefined();
    const reader = await keep("a", "FP32");
    expect((await reader.load([...tokens.slice(0, 100), ...tokens], 0))?.length).toBe(96);
    expect(await reader.load([9, ...tokens], 0)).toBeUndefined();
    expect((await reader.load(tokens.slice(0, 129), 0))?.length).toBe(128);
    // The scores after the last token are needed, so it is computed.
    expect((await reader.load(tokens.slice(0, 128), 0))?.length).toBe(112);
    expect(await reader.load(tokens.slice(0, 128), 112)).toBeUndefined();
    expect(warnings).toEqual([]);
  });

  it("stay within the size of the directory, and those that were used last are left", async () => {
    let now = 1_000_000;
    const bytes = () => files().reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
    const limit = 36 * 784;
    const serve = async (...entries: CachedPrefix[]) => {
      now += 1000;
      const directory = await PrefixDirectory.open(
        folder,
        limit,
        (text) => void warnings.push(text),
        () => now,
      );
      return new KeptPrefixes(directory, {
        layout: layout("FP32"),
        model: "a",
        cache: { entries },
        isBusy: () => false,
        now: () => now,
      });
    };
    const prompts = Array.from({ length: 6 }, (_, i) => tokens.map((token) => token + i));
    for (const prompt of prompts) {
      await (await serve(computed(prompt, "FP32"))).save();
      await (await serve()).load(prompts[0]!, 0);
      expect(bytes()).toBeLessThanOrEqual(limit);
    }
    const reader = await serve();
    const lengths = await Promise.all(prompts.map(async (one) => (await reader.load(one, 0))?.length));
    expect(lengths).toEqual([144, undefined, undefined, 144, 144, 144]);
    // The beginning of a prompt that is too long for the directory stays, and is not replaced by its end.
    const long = Array.from({ length: 64 * 9 }, (_, i) => 7 * i);
    await (await serve(computed(long, "FP32"))).save();
    expect((await reader.load(long, 0))?.length).toBe(64 * 4.5);
  });

  it("are not written for a minute after the disk was full", async () => {
    let now = 0;
    let isFull = true;
    const directory = await PrefixDirectory.open(
      folder,
      1000,
      (text) => void warnings.push(text),
      () => now,
    );
    const write = (name: string) =>
      directory.write(`${name.repeat(64)}.kv`, 10, async (path) => {
        writeFileSync(path, "0123456789");
        if (isFull)
          throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
      });
    expect(await write("a")).toBe(false);
    expect(files()).toEqual([]);
    isFull = false;
    expect(await write("a")).toBe(false);
    now = 60_000;
    expect(await write("a")).toBe(true);
    expect(files()).toEqual([`${"a".repeat(64)}.kv`]);
    expect(warnings).toEqual([
      "cannot write a file of prefixes: ENOSPC: no space left on device, write; prefixes are not kept for a minute",
    ]);
  });

  it("that a process left unfinished are deleted after an hour", async () => {
    const name = `${"a".repeat(64)}.kv.01234567-89ab-cdef-0123-456789abcdef.tmp`;
    writeFileSync(join(folder, name), "");
    const at = (minutes: number) =>
      PrefixDirectory.open(
        folder,
        1000,
        () => {},
        () => Date.now() + minutes * 60_000,
      );
    const write = (directory: PrefixDirectory, letter: string) =>
      directory.write(`${letter.repeat(64)}.kv`, 1, async (path) => writeFileSync(path, "x"));
    await write(await at(30), "b");
    expect(files()).toContain(name);
    await write(await at(90), "c");
    expect(files()).not.toContain(name);
  });

  it("are written at a block a time beside running texts, with rests between them", async () => {
    let now = 0;
    const directory = await PrefixDirectory.open(folder, 100_000, (text) => void warnings.push(text));
    const entries = [computed(tokens, "FP32")];
    const kept = new KeptPrefixes(directory, {
      layout: layout("FP32"),
      model: "a",
      cache: { entries },
      isBusy: () => true,
      now: () => now++,
    });
    await kept.save();
    expect(files().length).toBe(1);
    await kept.save();
    expect(files().length).toBe(1);
    now += 100;
    await kept.save();
    expect(files().length).toBe(2);
  });
});

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  const index = at < 0 ? bytes.length + at : at;
  bytes[index]! ^= 0xff;
  writeFileSync(path, bytes);
}
