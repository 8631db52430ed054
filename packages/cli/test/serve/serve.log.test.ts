import { expect, it } from "vitest";
import type { Terminal } from "../../src/command-context.js";
import { run } from "../../src/run.js";
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
  find({ level: "error", model: "m", version: "1", message: expect.stringContaining("failed to load 'm'") });
  find({ model: "m", version: "1", state: "UNAVAILABLE", reason: expect.stringContaining("model.js") });
  find({ options: expect.objectContaining({ strict_readiness: "1" }) });
  find({
    level: "warn",
    message: expect.stringContaining("model-repository, shared-memory, trace, logging need --compat=triton"),
  });
  find({ level: "info", message: "Signal (15) received." });
});

it("the tables fit 80 columns, however long the reason of a failure is", async () => {
  const lines = (await serve()).split("\n").filter((line) => /^[|+]/.test(line));
  expect(lines.length).toBeGreaterThan(20);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(lines.join("\n")).toContain("UNAVAILABLE");
});
