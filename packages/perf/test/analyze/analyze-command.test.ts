import { existsSync, readFileSync } from "node:fs";
import { readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import {
  type AnalyzeSettings,
  analyzeOptions,
  readAnalyzeSettings,
} from "../../src/analyze/analyze-settings.js";
import type { AnalyzeMachine } from "../../src/analyze/candidate.js";
import { runAnalyze, temporaryFolder } from "../support/analyze-command.js";
import { SimulatedMachine } from "../support/simulated-machine.js";

const space = ["--instances", "1,2", "--max-batch-sizes", "1,8", "--queue-delays", "0"];

const brute = ["-m", "m", "--search", "brute", "--concurrency-range", "8", ...space];

describe("tritonjs analyze", () => {
  it("shows the best configurations against the default, in 80 columns, and writes the reports", async () => {
    const folder = await temporaryFolder();
    const machine = new SimulatedMachine();
    const { code, output, errors } = await runAnalyze(["-m", "m", ...brute.slice(4), "-e", folder], machine);
    expect([code, errors.includes("left")]).toEqual([0, true]);
    expect(output).toMatch(/^variant +infer\/s +p99 ms +MB +gain +simulated +estimate$/m);
    expect(output).toMatch(/^default +\d+ .* 0% /m);
    expect(output).toMatch(/The best configuration is \d instances?, batch 8: \d+ infer\/s/);
    expect(Math.max(...output.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
    const read = (name: string) => readFile(join(folder, name), "utf8");
    const analysis = JSON.parse(await read("analysis.json"));
    expect(analysis.results[0]).toMatchObject({
      rank: 1,
      parameters: { m: { maxBatchSize: 8 } },
      satisfiesConstraints: true,
      simulated: { rank: expect.any(Number) },
    });
    // Four, and those of batches of 8 with the preferred sizes 4 and 8.
    expect(analysis.predictions).toHaveLength(6);
    const [header, ...rows] = (await read("metrics-model-inference.csv")).trim().split("\n");
    expect(header).toBe(
      "model_name,batch_size,concurrency,model_config_path,instance_group,max_batch_size," +
        "satisfies_constraints,perf_throughput,perf_latency_p99,perf_latency_avg,cpu_used_ram",
    );
    expect(rows.some((row) => /^m,1,8,m_config_default,1:AUTO,4,Yes,/.test(row))).toBe(true);
    expect(await read("summary.md")).toContain("| Model Config Name | Max Batch Size | Dynamic Batching |");
    const html = await read("report.html");
    expect(html).toContain("frontier");
    expect(html).not.toMatch(/<script|src=|href=/);
  });

  it("skips a configuration that cannot be loaded, and says why", async () => {
    const machine = new SimulatedMachine();
    machine.faultOf = ({ m }) => (m?.instances === 2 ? "no memory for 2 instances" : undefined);
    const { code, output } = await runAnalyze([...brute, "-e", await temporaryFolder()], machine);
    expect(code).toBe(0);
    expect(output).toMatch(/Skipped m_config_\d \(2 instances, batch 8\): no memory/);
  });

  it.each([
    ["brute", 3],
    // The default and three batch sizes, measured in turns.
    ["model", 4],
  ])("gives up when none of the first configurations works: --search %s", async (search, count) => {
    const machine = new SimulatedMachine();
    machine.faultOf = () => "the file is broken";
    const args = [...brute, "--search", search, "-e", await temporaryFolder()];
    const { code, errors } = await runAnalyze(args, machine);
    expect([code, machine.opened.length]).toEqual([99, count]);
    expect(errors).toContain(
      `expected one of the first ${count} configurations to answer requests, got: the file is broken`,
    );
  });

  it("does not try what the machine cannot vary", async () => {
    const tried = async (fixed: AnalyzeMachine["fixed"] = []) => {
      const onnx = 'platform: "onnxruntime_onnx" max_batch_size: 4';
      const machine = Object.assign(new SimulatedMachine(undefined, ["m"], onnx), { fixed });
      const few = ["--max-batch-sizes", "4", "--queue-delays", "0", "--preferred-batch-sizes", "0"];
      const args = ["-m", "m", "--instances", "1", ...few, "--concurrency-range", "8", "--verify", "1"];
      expect((await runAnalyze([...args, "-e", await temporaryFolder()], machine)).code).toBe(0);
      return new Set(machine.opened.flatMap(({ m }) => Object.keys(m!)));
    };
    expect(await tried()).toContain("isolation");
    const names = await tried(["isolation", "threads"]);
    expect([names.has("isolation"), names.has("threads"), names.has("instances")]).toEqual([
      ...[false, false, true],
    ]);
  });

  it("says which configuration is nearest when no one meets the constraints", async () => {
    const { code, output } = await runAnalyze(
      [...brute, "--latency-budget", "1", "--target-latencies", "0", "-e", await temporaryFolder()],
      new SimulatedMachine(),
    );
    expect(code).toBe(1);
    const text = output.replaceAll(/\n */g, " ");
    expect(text).toMatch(
      /No measured configuration meets the constraints. The nearest is .*: perf_latency_p99 is [\d.]+ ms, over 1 ms/,
    );
  });

  it("continues after an interruption with what was measured", async () => {
    const folder = await temporaryFolder();
    let interrupt = () => {};
    const stop = new Promise<void>((resolve) => {
      interrupt = resolve;
    });
    const first = new SimulatedMachine();
    first.onMeasure = (count) => {
      if (count === 3) interrupt();
    };
    const stopped = await runAnalyze([...brute, "-e", folder], first, { stop });
    expect(stopped.code).toBe(130);
    expect(stopped.errors).toContain("Continue with --resume");
    expect(stopped.output.replaceAll(/\n */g, " ")).toContain("the search ended early: it was interrupted");
    const { results: kept } = JSON.parse(await readFile(join(folder, "checkpoint.json"), "utf8"));
    expect(kept.length).toBeGreaterThanOrEqual(2);

    const second = new SimulatedMachine();
    const { code, output } = await runAnalyze([...brute, "-e", folder, "--resume"], second);
    expect(code).toBe(0);
    expect(output).toContain("5 measurements in");
    expect(second.measured).toBe(5 - kept.length);
  });

  it("keeps the levels that were measured when a configuration is interrupted, and continues with the next", async () => {
    const folder = await temporaryFolder();
    let interrupt = () => {};
    const stop = new Promise<void>((resolve) => {
      interrupt = resolve;
    });
    const args = ["-m", "m", "--search", "brute", "--concurrency-range", "1:4", ...space, "-e", folder];
    const first = new SimulatedMachine();
    // The third level of the second configuration.
    first.onMeasure = (count) => {
      if (count === 7) interrupt();
    };
    expect((await runAnalyze(args, first, { stop })).code).toBe(130);
    const rows = (await readFile(join(folder, "metrics-model-inference.csv"), "utf8")).trim().split("\n");
    expect(rows.length - 1).toBe(6);
    const second = new SimulatedMachine();
    expect((await runAnalyze([...args, "--resume"], second)).code).toBe(0);
    expect(second.measured).toBe(5 * 4 - 6);
  });

  it("repeats a real run that was interrupted, and nothing else", async () => {
    const folder = await temporaryFolder();
    let interrupt = () => {};
    const stop = new Promise<void>((resolve) => {
      interrupt = resolve;
    });
    const args = ["-m", "m", "--search", "model", "--concurrency-range", "8", "-e", folder];
    args.push("--instances", "1,2", "--max-batch-sizes", "1,2,4,8", "--queue-delays", "0,500");
    const whole = new SimulatedMachine();
    const expected = await runAnalyze(args, whole);
    const last = whole.measured;
    await rm(join(folder, "checkpoint.json"));

    const first = new SimulatedMachine();
    first.onMeasure = (count) => {
      if (count === last) interrupt();
    };
    expect((await runAnalyze(args, first, { stop })).code).toBe(130);
    const second = new SimulatedMachine();
    const { code, output } = await runAnalyze([...args, "--resume"], second);
    expect([code, second.measured]).toEqual([0, 1]);
    const verdict = /The best configuration is[^:]*/;
    expect(verdict.exec(output)?.[0]).toBe(verdict.exec(expected.output)?.[0]);
    expect(output).toContain(`${last} measurements in`);

    const third = new SimulatedMachine();
    const again = await runAnalyze([...args, "--resume"], third);
    expect([again.code, third.measured]).toEqual([0, 0]);
    expect(verdict.exec(again.output)?.[0]).toBe(verdict.exec(output)?.[0]);
  });

  it.skipIf(!existsSync("/dev/full"))("tells of a full disk, and shows what was measured", async () => {
    const folder = await temporaryFolder();
    await symlink("/dev/full", join(folder, "report.html"));
    const { code, output, errors } = await runAnalyze([...brute, "-e", folder], new SimulatedMachine());
    expect(code).toBe(99);
    expect(output).toMatch(/The best configuration is/);
    expect(errors).toMatch(/^error: cannot write .*report\.html: ENOSPC/m);
    expect(existsSync(join(folder, "summary.md"))).toBe(true);
  });

  it.skipIf(!existsSync("/dev/full"))(
    "goes on without a checkpoint on a full disk, and says so once",
    async () => {
      const folder = await temporaryFolder();
      await symlink("/dev/full", join(folder, "checkpoint.json.new"));
      const machine = new SimulatedMachine();
      const { code, output, errors } = await runAnalyze([...brute, "-e", folder], machine);
      expect([code, machine.measured]).toEqual([99, 5]);
      expect(output).toMatch(/The best configuration is/);
      expect(errors.match(/cannot write .*checkpoint\.json: ENOSPC/g)?.length).toBe(1);
      expect(existsSync(join(folder, "report.html"))).toBe(true);
    },
  );

  it("does not continue another search", async () => {
    const folder = await temporaryFolder();
    await runAnalyze([...brute, "-e", folder], new SimulatedMachine());
    const other = [...brute, "-b", "2", "-e", folder, "--resume"];
    const { code, errors } = await runAnalyze(other, new SimulatedMachine());
    expect([code, errors]).toEqual([
      99,
      expect.stringContaining("got those of another search; remove the file"),
    ]);
    await writeFile(join(folder, "checkpoint.json"), "{");
    expect((await runAnalyze([...brute, "-e", folder, "--resume"], new SimulatedMachine())).errors).toContain(
      "expected JSON",
    );
  });

  it("ends before its budget is exceeded", async () => {
    let time = 0;
    const machine = new SimulatedMachine();
    machine.onMeasure = () => {
      time += 20_000;
    };
    const args = [...brute, "--budget", "1m", "-e", await temporaryFolder()];
    const { code, output } = await runAnalyze(args, machine, { now: () => time });
    expect([code, machine.measured]).toEqual([0, 3]);
    expect(output.replaceAll(/\n */g, " ")).toContain("3 measurements in 60 s; the search ended early");
  });

  it("shows help with examples and exit codes, and its version", async () => {
    const help = await runAnalyze(["--help"], new SimulatedMachine());
    expect([help.code, help.errors]).toEqual([0, ""]);
    expect(help.output).toContain("Examples:\n  $ tritonjs analyze --model-repository models -m resnet\n");
    expect(help.output).toContain("130  interrupted");
    expect([...help.output.matchAll(/^(\w+):$/gm)].map(([, heading]) => heading)).toEqual([
      ...["Options", "Models", "Goal", "Search", "Configurations", "Load", "Measurement", "Reports"],
      "Examples",
    ]);
    const version = await runAnalyze(["--version"], new SimulatedMachine());
    expect(version.output).toMatch(/^\d+\.\d+\.\d+/);
  });

  it("says what it cannot read", async () => {
    const faults: readonly [readonly string[], string][] = [
      [[], "-m: expected the names of one or more models"],
      [["-m", "m,m"], "expected different models"],
      [["-m", "m", "--objective", "speed"], "--objective: expected perf_throughput"],
      [["-m", "m", "--constraint", "p99<5"], "--constraint: expected a limit such as perf_latency_p99<50"],
      [["-m", "m", "--constraint", "n.perf_latency_p99<5"], "expected one of the models m, got 'n'"],
      [["-m", "m", "--budget", "10"], "--budget: expected a time such as"],
      [["-m", "m", "--instances", "0"], "--instances: expected a whole number of at least 1"],
      [["-m", "m", "--concurrency-range", "1:0"], "--concurrency-range: expected at most 32 levels"],
      [["-m", "m", "--module", "x.js"], "exclude each other"],
    ];
    for (const [args, text] of faults) {
      const { code, errors } = await runAnalyze(args, new SimulatedMachine());
      expect([code, errors]).toEqual([99, expect.stringContaining(text)]);
    }
  });
});

/** Times left that a search of five measurements tells, one after each measurement but the last. */
async function timesLeft(args: readonly string[], secondsOf: (count: number) => number): Promise<string[]> {
  let [time, count] = [0, 0];
  const machine = new SimulatedMachine();
  machine.onMeasure = () => {
    time += 1000 * secondsOf(++count);
  };
  const all = [...brute, ...args, "-e", await temporaryFolder()];
  const { errors } = await runAnalyze(all, machine, { now: () => time });
  return [...errors.matchAll(/\(about (.*?) left\)/g)].map(([, left]) => left!);
}

describe("the time left", () => {
  it("is the mean time of the measurements so far, times the number of further ones", async () => {
    expect(await timesLeft([], () => 20)).toEqual(["80 s", "60 s", "40 s", "20 s"]);
    // 10, 20, 30 and 40 s: the mean grows.
    expect(await timesLeft([], (count) => 10 * count)).toEqual(["40 s", "45 s", "40 s", "25 s"]);
  });

  it("is never more than what is left of the budget", async () => {
    // The fourth measurement would end after 80 s.
    expect(await timesLeft(["--budget", "75s"], () => 20)).toEqual(["55 s", "35 s", "15 s"]);
  });

  it("does not count the first turns of a search with a model, which load each configuration for a short run", async () => {
    let time = 0;
    const machine = new SimulatedMachine();
    const { open } = machine;
    machine.open = async (candidate) => {
      time += 5000;
      return open.call(machine, candidate);
    };
    const args = ["-m", "m", "--concurrency-range", "8", ...space, "-e", await temporaryFolder()];
    const { code, errors } = await runAnalyze([...args, "--budget", "1m"], machine, { now: () => time });
    expect([code, errors]).toEqual([0, expect.stringContaining("infer/s")]);
  });

  it("counts the turns of a search with a model by their shares", async () => {
    let time = 0;
    const machine = new SimulatedMachine();
    const { open } = machine;
    machine.open = async (candidate) => {
      const { measure, close } = await open.call(machine, candidate);
      return {
        close,
        measure: (level, signal, share = 1) => {
          time += share * 12_000;
          return measure(level, signal, share);
        },
      };
    };
    const args = ["-m", "m", "--concurrency-range", "8", ...space, "-e", await temporaryFolder()];
    const { errors } = await runAnalyze([...args, "--verify", "1"], machine, { now: () => time });
    // The default, three batch sizes and one leader of 12 s each.
    const lines = errors.split("\n").filter((line) => line.includes("infer/s"));
    const left = lines.map((line) => Number(/about ([\d.]+) s left/.exec(line)?.[1] ?? 0));
    expect(left).toEqual([48, 36, 24, 12, 0]);
  });
});

/** The settings of a command line for the model `m`. */
function settingsOf(line: string, source = "--model-repository models"): AnalyzeSettings {
  const command = analyzeOptions("0").exitOverride();
  command.parse(`-m m ${source} ${line}`.trim().split(" "), { from: "user" });
  return readAnalyzeSettings(command.opts(), line);
}

describe("the lists of values", () => {
  it.each([
    ["--isolation worker,process", { isolation: ["worker", "process"] }],
    ["--isolation default", { isolation: ["default"] }],
    ["--preferred-batch-sizes 4,8+16", { preferredBatchSizes: [[4], [8, 16]] }],
    ["--preferred-batch-sizes 0,4", { preferredBatchSizes: [[], [4]] }],
    ["--target-latencies 0,2.5", { targetLatencyMs: [0, 2.5] }],
    ["--deadlines 0,50", { deadlineMs: [0, 50] }],
    ["--threads 0,1,4", { threads: [0, 1, 4] }],
    ["--queue-delays 0,500", { queueDelayMicroseconds: [0, 500] }],
    ["--instances 1,3", { instances: [1, 3] }],
    ["--max-batch-sizes 1,8", { maxBatchSize: [1, 8] }],
    ["--max-batch-sizes 0", { maxBatchSize: [] }],
    ["", {}],
  ])("are read: %s", (line, space) => {
    expect(settingsOf(line).space).toEqual(space);
  });

  it.each([
    ["--isolation inline", "--isolation: expected default or worker or process, got 'inline'"],
    ["--preferred-batch-sizes 4+x", "--preferred-batch-sizes: expected a whole number"],
    ["--preferred-batch-sizes 4,,8", "--preferred-batch-sizes: expected a whole number"],
    ["--max-batch-sizes 0,8", "--max-batch-sizes: expected sizes of at least 1, or 0 alone"],
    ["--threads 1.5", "--threads: expected a whole number"],
  ])("are refused: %s", (line, text) => {
    expect(() => settingsOf(line)).toThrow(text);
  });

  it.each(["isolation process", "threads 1"])("do not have --%s for bound models", (option) => {
    const [name] = option.split(" ");
    expect(() => settingsOf(`--${option}`, "--module program.js")).toThrow(
      `--${name}: expected models of --model-repository, got bound models of --module`,
    );
  });
});

const page = readFileSync(
  fileURLToPath(new URL("../../../../docs/performance-tools.md", import.meta.url)),
  "utf8",
).replaceAll("\r\n", "\n");

/** The text that `--help` shows. */
function helpText(): string {
  let help = "";
  analyzeOptions("0")
    .configureOutput({
      writeOut: (text) => {
        help += text;
      },
    })
    .outputHelp();
  return help;
}

const lines = [
  ...page.matchAll(/^tritonjs analyze .*$/gm),
  ...helpText().matchAll(/(?<=\$ )tritonjs analyze .*$/gm),
].map(([line]) => line);

describe("the page about tritonjs analyze", () => {
  it.each(lines)("has a command that is read: %s", (line) => {
    const command = analyzeOptions("0").exitOverride();
    command.parse(line.split(" ").slice(2), { from: "user" });
    expect(readAnalyzeSettings(command.opts(), line).models.length).toBeGreaterThan(0);
  });

  it("lists every option of the command, and no other", () => {
    const [, section = ""] = /\n## Analyze\n(.*?)(?=\n## |$(?![\s\S]))/s.exec(page) ?? [];
    const [table = ""] = /\| models \|.*?(?=\n\n)/s.exec(section) ?? [];
    const listed = [...table.matchAll(/`(--[\w-]+)`/g)].map(([, name]) => name!);
    expect(listed.toSorted()).toEqual(
      analyzeOptions("")
        .options.flatMap(({ long }) => long ?? [])
        .filter((name) => name !== "--version")
        .toSorted(),
    );
  });
});
