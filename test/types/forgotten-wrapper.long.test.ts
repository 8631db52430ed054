import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { npmTool } from "../package/foreign-tools.js";
import { repositoryRoot } from "../support/repository.js";

/* What the compiler says about callbacks that lack batch() or sample(). It compiles all of them at once. */

const SENTENCE = '"did you mean batch(fn) or sample(fn)?"';

/** Callbacks, and whether they are mistakes. */
const CALLBACKS: Readonly<Record<string, string>> = {
  destructures: "({ x }) => ({ y: x })",
  "reads a property": "(inputs) => ({ y: inputs.x })",
  "is asynchronous": "async ({ x }) => ({ y: x })",
  "uses the input": "({ x }) => ({ y: x.data })",
};

const RIGHT: Readonly<Record<string, string>> = {
  "a list": "(requests) => requests.map(({ inputs }) => ({ y: inputs.x }))",
  "a promise of a list": "async (requests) => requests.map(({ inputs }) => ({ y: inputs.x }))",
  "a generator of lists": "function* (requests) { yield requests.map(({ inputs }) => ({ y: inputs.x })); }",
  "nothing, but answers through its senders":
    "(requests) => { for (const { responseSender } of requests) responseSender.close(); }",
  "outputs, in batch()": "batch(({ x }) => ({ y: x }))",
  "several functions":
    "[batch(({ x }) => ({ y: x })), (requests) => requests.map(({ inputs }) => ({ y: inputs.x }))]",
};

const HEAD = [
  'import { batch, Triton } from "@tritonjs/core";',
  "const triton = new Triton();",
  'const inputs = [{ name: "x", dtype: "FP32", shape: [2] }] as const;',
  'const outputs = [{ name: "y", dtype: "FP32", shape: [2] }] as const;',
];

const COMPILERS = [
  {
    version: 7,
    note: "",
    path: createRequire(import.meta.url)
      .resolve("typescript/package.json")
      .replace("package.json", "bin/tsc"),
  },
  {
    version: 6,
    ...npmTool("TypeScript 6.0", "typescript-6.0", "typescript@~6.0.0", join("typescript", "bin", "tsc")),
  },
];

let file: string;

beforeAll(async () => {
  const cache = join(repositoryRoot, "test/types/.compiled");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "forgotten-"));
  const calls = [...Object.values(CALLBACKS), ...Object.values(RIGHT)].map(
    (fn) => `triton.bind({ modelName: "m", inputs, outputs, inferFunc: ${fn} });`,
  );
  file = join(folder, "mistakes.ts");
  await writeFile(file, [...HEAD, ...calls].join("\n"));
});

afterAll(() => rm(join(repositoryRoot, "test/types/.compiled"), { recursive: true, force: true }));

describe.each(COMPILERS)("TypeScript $version $note", ({ path }) => {
  /** Diagnostics by line of the file. */
  let diagnostics: Map<number, string[]>;

  beforeAll(async () => {
    if (path !== undefined) diagnostics = byLine(await compile(path, file));
  });

  it.skipIf(path === undefined).each(Object.keys(CALLBACKS).map((name, i) => [name, i] as const))(
    "asks for batch() or sample() around a function that %s",
    (_name, i) => {
      const found = diagnostics.get(HEAD.length + 1 + i) ?? [];
      expect(found).not.toEqual([]);
      for (const text of found) {
        expect(text).toContain(SENTENCE);
        expect(text.length).toBeLessThan(300);
      }
    },
  );

  it.skipIf(path === undefined)("says so in the line of the last cause", () => {
    expect(
      diagnostics
        .get(HEAD.length + 1)!
        .join()
        .split("\n")
        .at(-1)!
        .trim(),
    ).toBe(`Type '{ y: ${SENTENCE}; }' is not assignable to type '${SENTENCE}'.`);
    expect(diagnostics.get(HEAD.length + 4)).toContain(
      `Property 'data' does not exist on type '${SENTENCE}'.`,
    );
  });

  it.skipIf(path === undefined).each(Object.keys(RIGHT).map((name, i) => [name, i] as const))(
    "accepts a callback that returns %s",
    (_name, i) => {
      expect(diagnostics.get(HEAD.length + 1 + Object.keys(CALLBACKS).length + i)).toBeUndefined();
    },
  );
});

function compile(tsc: string, file: string): Promise<string> {
  const options =
    "--target ES2022 --module NodeNext --skipLibCheck --strict --noEmit --types node --ignoreConfig";
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [tsc, ...options.split(" "), "--pretty", "false", file],
      { cwd: repositoryRoot },
      (_failed, stdout) => resolve(stdout),
    );
  });
}

function byLine(output: string): Map<number, string[]> {
  const found = new Map<number, string[]>();
  for (const part of output.split(/^(?=\S+\(\d+,\d+\): error )/m)) {
    const [, line, text] = /\((\d+),\d+\): error TS\d+: ([\s\S]*)/.exec(part) ?? [];
    if (line === undefined) throw new Error(`unexpected output of the compiler: ${part}`);
    found.set(Number(line), [...(found.get(Number(line)) ?? []), text!.trim()]);
  }
  return found;
}
