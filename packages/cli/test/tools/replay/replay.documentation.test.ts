import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { replayTrace } from "../../../src/trace/replay.js";
import { temporaryFolder } from "../support/analyze-command.js";
import { record } from "./support/record.js";

/** Runs the command, and returns what it wrote. */
async function run(...args: string[]) {
  let [out, err] = ["", ""];
  const code = await replayTrace(args, {
    write: (text) => {
      out += text;
    },
    writeError: (text) => {
      err += text;
    },
  });
  return { code, out, err };
}

const page = (
  await readFile(new URL("../../../../../docs/performance-tools.md", import.meta.url), "utf8")
).replaceAll("\r\n", "\n");
const { out: help } = await run("--help");
const commands = [...`${page}${help}`.matchAll(/^ *(tritonjs replay .*)$/gm)].map(([, line]) => line!);
// Captures and recordings of the scheduling have tests of their own, capture-replay and replay-batches.
// Several models have a test in replay.test.
const lines = new Set(commands.filter((line) => !/--against|--rate-limit|\.tape/.test(line)));

describe("the page about tritonjs replay", () => {
  let trace: string;
  beforeAll(async () => {
    trace = await record({ maxBatchSize: 4, batcher: {}, instances: 1, perMs: 0.1, count: 50 });
  });

  it.each([...lines])("has a command that runs: %s", async (line) => {
    const folder = await temporaryFolder();
    const before = process.cwd();
    onTestFinished(() => process.chdir(before));
    process.chdir(folder);
    await mkdir(join("models", "resnet"), { recursive: true });
    await cp(trace, "trace.json");
    const config = "max_batch_size: 4 dynamic_batching { }";
    for (const path of [join("models", "resnet", "config.pbtxt"), "other.pbtxt"])
      await writeFile(path, config);
    const { code, out, err } = await run(...line.split(" ").slice(2));
    expect({ code, err: code === 0 ? "" : err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^Requests answered +50 +50/m);
  });

  it("has several commands", () => expect(lines.size).toBeGreaterThan(1));

  it("lists every option of the command, and no other", () => {
    const [, section = ""] = /\n## Replay\n(.*?)\n## /s.exec(page) ?? [];
    const listed = [...section.matchAll(/^\| `(--[\w-]+)/gm)].map(([, name]) => name!);
    const known = [...help.split("Examples:")[0]!.matchAll(/^ +(?:-\w, )?(--[\w-]+)/gm)].map(
      ([, name]) => name!,
    );
    expect(listed.toSorted()).toEqual(known.filter((name) => name !== "--help").toSorted());
  });
});
