/*
 * Compared programs run in processes of their own, each with its own heap and its own compiled code. They answer calls
 * over the channel to their parent.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";

/** A program of `bench/programs`, started and ready for calls. */
export class Program {
  #child;
  #waiting = new Map();
  #next = 0;

  constructor(child) {
    this.#child = child;
    child.on("message", ({ id, value, error }) => {
      const { resolve, reject } = this.#waiting.get(id) ?? {};
      this.#waiting.delete(id);
      if (error === undefined) resolve?.(value);
      else reject?.(new Error(error));
    });
    child.on("exit", (code, signal) => {
      for (const { reject } of this.#waiting.values())
        reject(new Error(`the program ended with ${signal ?? code}`));
      this.#waiting.clear();
    });
  }

  /** Calls the function that the program passed to `answerCalls` under this name. */
  call(name, ...args) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ id, name, args });
    });
  }

  async stop() {
    if (this.#child.exitCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }
}

/**
 * @param name file in `bench/programs`, without its ending
 * @param options options of the program; `nodeOptions` are for Node
 * @param tree root of the revision that the program imports packages from; by default this one
 */
export async function startProgram(name, { nodeOptions = [], ...options } = {}, tree = undefined) {
  const path = fileURLToPath(new URL(`../programs/${name}.mjs`, import.meta.url));
  const execArgv = ["--expose-gc", ...nodeOptions];
  const child = fork(path, [JSON.stringify({ tree, ...options })], { execArgv });
  const program = new Program(child);
  await program.call("ready");
  return program;
}

/** Arguments of this program. */
export const programOptions = () => JSON.parse(process.argv[2] ?? "{}");

/** In a program: answers the parent's calls. All programs answer `use` and `memory`. */
export function answerCalls(calls) {
  const all = { ready: () => true, use: useSinceLastAsked(), memory: settledMemory, ...calls };
  process.on("message", async ({ id, name, args }) => {
    try {
      process.send({ id, value: await all[name](...args) });
    } catch (error) {
      process.send({ id, error: String(error?.stack ?? error) });
    }
  });
  process.on("disconnect", () => process.exit());
}

/** CPU time of this process, and the share of the time that its event loop was busy, since the last call. */
function useSinceLastAsked() {
  let cpu = process.cpuUsage();
  let loop = performance.eventLoopUtilization();
  return () => {
    const used = process.cpuUsage(cpu);
    const { utilization } = performance.eventLoopUtilization(loop);
    cpu = process.cpuUsage();
    loop = performance.eventLoopUtilization();
    return { cpuMs: (used.user + used.system) / 1000, utilization };
  };
}

/** Bytes in use once all garbage is collected. */
async function settledMemory() {
  for (let i = 0; i < 4; i++) {
    globalThis.gc();
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  const { heapUsed, rss, arrayBuffers, external } = process.memoryUsage();
  return { heapUsed, rss, arrayBuffers, external };
}

/** A call for `answerCalls`: the 99th percentile of the event loop's delay since the last call, in ms. */
export function eventLoopDelay() {
  const resolution = 1;
  const histogram = monitorEventLoopDelay({ resolution });
  histogram.enable();
  return () => {
    const p99 = histogram.percentile(99) / 1e6 - resolution;
    histogram.reset();
    return Math.max(0, p99);
  };
}

/** Processor time of this process and of all processes that it started and that still run, in µs. Linux only. */
export function treeCpuMicroseconds() {
  let sum = 0;
  const processes = ["self"];
  for (const pid of processes) {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const folder = `/proc/${pid}/task/${thread}`;
      try {
        sum += Number(readFileSync(`${folder}/schedstat`, "utf8").split(" ")[0]) / 1000;
        processes.push(...readFileSync(`${folder}/children`, "utf8").split(" ").filter(Boolean));
      } catch {
        // The thread has ended.
      }
    }
  }
  return sum;
}
