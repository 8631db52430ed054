import { describe, expect, it } from "vitest";
import { runAnalyze, temporaryFolder } from "../../support/analyze-command.js";
import { SimulatedMachine } from "../../support/simulated-machine.js";

const space = ["--instances", "1,2", "--max-batch-sizes", "1,8", "--queue-delays", "0"];
const brute = ["-m", "m", "--search", "brute", "--concurrency-range", "8", ...space];

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
