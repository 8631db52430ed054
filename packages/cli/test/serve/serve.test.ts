import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Terminal } from "@tritonjs/cli";
import { Triton } from "@tritonjs/core";
import type { ModelIndexEntry } from "@tritonjs/protocol";
import { Log, serviceOf } from "@tritonjs/server";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { descriptorFault } from "../../src/descriptor-fault.js";
import { run } from "../../src/run.js";
import { classModels } from "../../src/serve/class-models.js";
import { reportProgress, textTable } from "../../src/serve/serve.js";
import { TemporaryFolder } from "../support/temporary-folder.js";

/** A terminal that asks to stop once a line contains `last`. */
class StoppingTerminal implements Terminal {
  readonly environment = {};
  errors = "";
  #stop: (signal: string) => void = () => {};
  readonly #stopped = new Promise<string>((resolve) => {
    this.#stop = resolve;
  });

  constructor(readonly last: string) {}

  write(): void {}

  writeError(text: string): void {
    this.errors += text;
    if (text.includes(this.last)) this.#stop("15");
  }

  stopRequested(): Promise<string> {
    return this.#stopped;
  }
}

const config =
  'backend: "javascript"\ninput { name: "x" data_type: TYPE_FP32 dims: 1 }\noutput { name: "y" data_type: TYPE_FP32 dims: 1 }';

/** The log of a server with one model that fails to load. */
async function serve(...args: string[]): Promise<string> {
  await using folder = await TemporaryFolder.create({ "m/config.pbtxt": config, "m/1/": "" });
  const terminal = new StoppingTerminal("need --compat=triton");
  const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"];
  const given = [`--model-repository=${folder.path}`, "--exit-on-error=false", "--grpc-infer-thread-count=4"];
  expect(await run(["serve", ...given, ...ports, ...args], terminal)).toBe(0);
  return terminal.errors;
}

describe("serve log", () => {
  it("all lines of a server with --log-format=json are JSON, with the model and its state as fields", async () => {
    const lines = (await serve("--log-format=json"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    for (const line of lines) {
      expect(line).toMatchObject({
        time: expect.any(String),
        level: expect.any(String),
        message: expect.any(String),
      });
    }
    const find = (fields: object) => expect(lines).toContainEqual(expect.objectContaining(fields));
    find({ level: "warn", message: expect.stringContaining("'--grpc-infer-thread-count' has no effect") });
    find({ level: "info", message: "loading: m:1", model: "m", version: "1" });
    find({
      level: "error",
      model: "m",
      version: "1",
      message: expect.stringContaining("failed to load 'm'"),
    });
    find({ model: "m", version: "1", state: "UNAVAILABLE", reason: expect.stringContaining("model.js") });
    find({ options: expect.objectContaining({ strict_readiness: "1" }) });
    find({
      level: "warn",
      message: expect.stringContaining(
        "model-repository, shared-memory, trace, logging need --compat=triton",
      ),
    });
    find({ level: "info", message: "Signal (15) received." });
  });

  it("the tables fit 80 columns, however long the reason of a failure is", async () => {
    const lines = (await serve()).split("\n").filter((line) => /^[|+]/.test(line));
    expect(lines.length).toBeGreaterThan(20);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(lines.join("\n")).toContain("UNAVAILABLE");
  });
});

describe("report progress", () => {
  beforeEach(() => void vi.useFakeTimers());

  afterEach(() => void vi.useRealTimers());

  it("progress reports end without an error when the server closes while models load", async () => {
    const triton = new Triton();
    reportProgress(serviceOf(triton));
    await triton.close();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("progress reports name the models that still load every ten seconds, until stopped", async () => {
    const lines: string[] = [];
    const log = new Log({ error() {}, warn() {}, info: (line) => lines.push(line), debug() {} });
    let index: ModelIndexEntry[] = [
      { name: "big", version: "1", state: "LOADING" },
      { name: "small", version: "2", state: "READY" },
    ];
    await using triton = new Triton();
    const service = Object.create(serviceOf(triton), {
      log: { value: log },
      repositoryIndex: { value: async () => index },
    });
    const progress = reportProgress(service);
    await vi.advanceTimersByTimeAsync(9_999);
    expect(lines).toEqual([]);
    await vi.advanceTimersByTimeAsync(10_001);
    expect(lines).toEqual(["still loading after 10 seconds: big:1", "still loading after 20 seconds: big:1"]);
    index = [];
    await vi.advanceTimersByTimeAsync(10_000);
    progress.stop();
    index = [{ name: "big", version: "1", state: "LOADING" }];
    await vi.advanceTimersByTimeAsync(60_000);
    expect(lines).toHaveLength(2);
  });
});

const widthOf = (table: string) => Math.max(...table.split("\n").map((line) => line.length));

describe("text table", () => {
  it("a table that fits looks as in tritonserver", () => {
    expect(textTable(["Model", "Version"], [["resnet", "1"], ["b"]], 80)).toBe(
      [
        "+--------+---------+",
        "| Model  | Version |",
        "+--------+---------+",
        "| resnet | 1       |",
        "| b      |         |",
        "+--------+---------+",
      ].join("\n"),
    );
  });

  it("a long reason continues on further lines within the width", () => {
    const reason = `UNAVAILABLE: Internal: failed to stat file ${"/very/long/path".repeat(8)} in the repository`;
    const table = textTable(["Model", "Version", "Status"], [["resnet", "1", reason]], 80);
    expect(widthOf(table)).toBe(80);
    const cells = table.split("\n").map((line) => line.split("|")[3]?.trim() ?? "");
    expect(cells.join("").replaceAll(" ", "")).toContain(reason.replaceAll(" ", ""));
    expect(table.split("\n")[4]).toMatch(/^\| {8}\| {9}\| \S/);
  });

  it.each([
    ["a".repeat(200), "b".repeat(200), "c".repeat(200)],
    ["short", "b".repeat(100), "c c ".repeat(40)],
    ["x".repeat(76), "1", "READY"],
  ])("long cells of any column fit: %s", (...row) => {
    const table = textTable(["Model", "Version", "Status"], [row], 80);
    expect(widthOf(table)).toBeLessThanOrEqual(80);
    for (const [index, cell] of row.entries()) {
      const column = table.split("\n").map((line) => line.split("|")[index + 1]?.trim() ?? "");
      expect(column.join("").replaceAll(" ", "")).toContain(cell.replaceAll(" ", ""));
    }
  });

  it("columns are not cut below eight characters, however narrow the terminal is", () => {
    expect(widthOf(textTable(["Model", "Version", "Status"], [["a".repeat(99), "1", "READY"]], 5))).toBe(31);
  });
});

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tritonjs-test-"));
  await writeFile(join(folder, "model-settings.json"), '{"name": "iris", "implementation": "a.B"}');
});

afterAll(() => rm(folder, { recursive: true, force: true }));

async function settingsOf(name: string, given: string): Promise<unknown> {
  const { repository } = await classModels([given]);
  return JSON.parse(await readFile(join(repository!, name, "model-settings.json"), "utf8"));
}

describe("--model", () => {
  it.each([
    ["module.js#Scale", "Scale", "module.js#Scale"],
    ["other=module.mjs#Scale", "other", "module.mjs#Scale"],
    ["module.py:My_Model2", "My_Model2", "module.py#My_Model2"],
  ])("%s is a model of the class", async (given, name, implementation) => {
    expect(await settingsOf(name, given)).toEqual({
      name,
      implementation: join(process.cwd(), implementation),
    });
  });

  it("with a folder has the name of its settings, or the given one", async () => {
    expect(await settingsOf("iris", folder)).toEqual({ folder });
    expect(await settingsOf("flowers", `flowers=${folder}`)).toEqual({ folder });
  });

  it.each([
    [
      ["module.js"],
      "expected <module.js>#<Class>, <module.py>#<Class> or a folder with a model-settings.json, got 'module.js'",
    ],
    [["module.js#a.b"], "got 'module.js#a.b'"],
    [["nowhere"], "got 'nowhere'"],
    [
      ["a.js#Scale", "b.js#Scale"],
      "two models have the name 'Scale': give one of them another, <name>=b.js#Scale",
    ],
  ])("refuses %s", async (given, text) => {
    await expect(classModels(given)).rejects.toThrow(text);
  });

  it("makes no repository without any", async () => {
    expect((await classModels([])).repository).toBeUndefined();
  });
});

const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

/** The command gets this limit, and a module that it imports first leaves some of the descriptors free. */
const LIMIT = 100;

const leaving = (free: number) => `data:text/javascript,
  import { closeSync, openSync } from "node:fs";
  const taken = [];
  try { for (;;) taken.push(openSync("/dev/null")); } catch {}
  for (const one of taken.slice(0, ${free})) closeSync(one);`;

describe.skipIf(process.platform === "win32")("serve with too few open files", () => {
  it.each([1, 2])("names the limit and the remedy when %d can be opened", async (free) => {
    const repository = mkdtempSync(join(tmpdir(), "tritonjs-descriptors-"));
    onTestFinished(() => rmSync(repository, { recursive: true }));
    const flags = `--model-repository=${repository} --http-port 0 --grpc-port 0 --metrics-port 0`;
    const command = `ulimit -n ${LIMIT} && exec "$0" --import "$1" "$2" serve ${flags}`;
    const { stderr, ...outcome } = await new Promise<{ code: unknown; stdout: string; stderr: string }>(
      (resolve) => {
        const args = ["-c", command, process.execPath, leaving(free), main];
        execFile("/bin/sh", args, (error, stdout, stderr) => resolve({ code: error?.code, stdout, stderr }));
      },
    );
    expect(outcome, stderr).toEqual({ code: 1, stdout: "" });
    const last = stderr.trimEnd().split("\n").at(-1);
    expect(last, stderr).toBe(
      `error: too many open files: this process may have ${LIMIT}; raise the limit, for instance with 'ulimit -n 4096'`,
    );
  });
});

describe("a start-up error", () => {
  it("names the limit when its cause is the number of open files", () => {
    const cause = Object.assign(new Error("listen EMFILE"), { code: "EMFILE" });
    expect(descriptorFault(new Error("cannot listen", { cause }))).toMatch(
      /^error: too many open files: this process may have \d+; raise the limit/,
    );
  });

  it("keeps its text for any other cause", () => {
    expect(descriptorFault(new Error("port 8000 is already in use"))).toBeUndefined();
    expect(descriptorFault(undefined)).toBeUndefined();
  });
});
