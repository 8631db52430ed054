import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { boxOf, drawVideo } from "../../examples/tutorials/video/make-video.mjs";
import { bindTracker } from "../../examples/tutorials/video/tracker.mjs";
import { promisedOutput } from "../support/example-readme.js";
import { expectPromisedOutput } from "../support/example-run.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { track } from "./track.js";

it.each(["rollout", "model-repository"])(
  "the example %s runs to its end and prints what its README promises",
  (name) => expectPromisedOutput(name),
);

describe("the instances example", () => {
  it("continues after a crash and after a loop", async () => {
    const module = join(repositoryRoot, "examples", "instances", "dist", "main.js");
    const { code, stdout, stderr } = await Program.node(module, [], repositoryRoot).ended;
    expect(code).toBe(0);
    const restarts = [
      ...stderr.matchAll(/TritonError: instance '(\w+)' of model '\w+' version 1 restarts in/g),
    ];
    expect(restarts.map(([, instance]) => instance)).toEqual(["roots_0_0", "roots_0_1"]);
    expect(stdout).toMatch(promisedOutput("instances"));
  });
});

const line =
  /^(\d+)\/s: (\d+) answered, (\d+) of them in time, in \d+ batches of ([\d.]+) rows; (none|\d+) refused(?:, to come again in (\d+) to (\d+) ms)?$/;

/** The numbers of one line of the example. */
function read(text: string) {
  const [, load, answered, inTime, rows, refused, soonest, latest] = line.exec(text) ?? expect.fail(text);
  return {
    load: Number(load),
    answered: Number(answered),
    inTime: Number(inTime),
    rows: Number(rows),
    refused: refused === "none" ? 0 : Number(refused),
    soonest: Number(soonest),
    latest: Number(latest),
  };
}

describe("the adaptive batching example", () => {
  it("makes larger batches under more load, and rejects only requests that would be late", async () => {
    const main = join(repositoryRoot, "examples", "adaptive-batching", "dist", "main.js");
    const { code, stdout, stderr } = await Program.node(main, [], repositoryRoot).ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(promisedOutput("adaptive-batching"));
    const lines = stdout.trimEnd().split("\n");
    const loads = lines.slice(0, 5).map(read);
    expect(loads.map(({ load }) => load)).toEqual([20, 100, 400, 800, 1600]);
    for (const { load, answered, inTime, refused } of loads) {
      expect(answered + refused).toBe(4 * load);
      expect(inTime / answered).toBeGreaterThan(0.9);
    }
    expect(loads.map(({ refused }) => refused > 0)).toEqual([false, false, false, true, true]);
    const [first, second, third, fourth] = loads.map(({ rows }) => rows);
    expect(first).toBe(1);
    expect(first! < second! && second! < third! && third! < fourth!).toBe(true);
    for (const { soonest, latest } of loads.slice(3)) {
      expect(soonest).toBeGreaterThanOrEqual(1);
      expect(latest).toBeLessThan(50);
    }
    const [, atOnce, inTheEnd] = /^100 at once: (\d+) .* attempt, (\d+) in the end$/.exec(lines[5]!) ?? [];
    expect(Number(atOnce)).toBeGreaterThan(0);
    expect(Number(atOnce)).toBeLessThan(100);
    expect(inTheEnd).toBe("100");
    expect(lines[6]).toMatch(/^batches took 11\.0 ms for 1 row, \d+\.0 ms for \d+ rows$/);
  });
});

describe("PyTriton's tutorials", () => {
  it.each([
    ["linear", /^Linear on KIND_(?:CPU|GPU) at (http:\S+)\n/],
    ["my-model", /^MyModel at (http:\S+)\n/],
  ])("the server and the client of PyTriton's tutorial %s print what it shows", async (name, started) => {
    const tutorial = join(repositoryRoot, "examples/tutorials", name);
    const server = Program.node(join(tutorial, "server.mjs"), ["--port=0"], repositoryRoot);
    onTestFinished(() => server.signal("SIGKILL"));
    const [, url] = started.exec(await server.untilOutput("\n"))!;
    const { code, stdout, stderr } = await Program.node(
      join(tutorial, "client.mjs"),
      [`--url=${url}`],
      repositoryRoot,
    ).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const [, expected] = /^```text\n(.*?)^```$/ms.exec(await readFile(join(tutorial, "README.md"), "utf8"))!;
    expect(stdout).toBe(expected);
    server.signal("SIGTERM");
    expect((await server.ended).code).toBe(0);
  });
});

describe("the tutorial about videos", () => {
  const tutorial = join(repositoryRoot, "examples/tutorials/video");
  const hasFfmpeg = spawnSync("ffmpeg", ["-version"], { stdio: "ignore" }).status === 0;
  const withoutFfmpeg = hasFfmpeg ? "" : " (skipped: ffmpeg is not installed)";

  let folder: string;
  let triton: Triton;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "video-"));
    triton = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
  });
  afterEach(async () => {
    await triton.close();
    await rm(folder, { recursive: true });
  });

  it.skipIf(!hasFfmpeg)(`tracks a compressed file by ffmpeg${withoutFfmpeg}`, async () => {
    const [raw, compressed] = [join(folder, "raw.y4m"), join(folder, "video.mp4")];
    const boxes = await drawVideo(raw, { frames: 25 });
    spawnSync("ffmpeg", ["-v", "error", "-i", raw, "-c:v", "mpeg4", "-q:v", "1", compressed]);
    const { report, tracked } = await track(await bindTracker(triton), compressed);
    expect(report.frames).toBe(25);
    for (const { index, box } of tracked) {
      for (const [corner, position] of box.entries()) {
        expect(Math.abs(position - boxes[index]![corner]!)).toBeLessThan(3);
      }
    }
  });

  it("the program prints each video's frames and latencies", async () => {
    const { code, stdout } = await Program.node(join(tutorial, "main.mjs"), [], repositoryRoot).ended;
    expect(code).toBe(0);
    const last = boxOf(59, { width: 160, height: 120, step: 1 }).join(" ");
    expect(stdout).toMatch(
      /^step-1\.y4m: 60 frames, 0 dropped, \d+ a second, latency [\d.]+ ms, 95 % below [\d.]+ ms\n/,
    );
    expect(stdout).toContain(`  frame 59: object at ${last}\n`);
  });
});
