/*
 * The decoder beside llama.cpp: one model of Llama's architecture with random weights, as GGUF with Q4_0 for
 * node-llama-cpp and as ONNX with 4 bits, once with a scale for each 32 weights as Q4_0 has it, and once for each 128.
 * `NODE_LLAMA_CPP` is the path of that package. All run in turns, each in a process of its own with one thread of
 * computation.
 *
 * `BENCH_PREFIXES=1` measures prefixes on disk instead, for which the package is not needed.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "../scripts/run.mjs";
import { writeLlamaFiles } from "./support/llama-files.mjs";
import { median, short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const LONG_PROMPT = Number(process.env.BENCH_LONG_PROMPT ?? 4000);
const folder = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
const BLOCKS = [32, 128];
const { gguf, directories } = writeLlamaFiles(folder, BLOCKS);

/** A process with an engine. */
class Engine {
  #child;
  #lines;

  /** @param last entry of node-llama-cpp, or options of the decoder */
  static async start(kind, path, last) {
    const engine = new Engine();
    const program = join(root, "bench", "programs", "text-engine.mjs");
    engine.#child = spawn(process.execPath, [program, kind, path, "1", last], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    engine.#lines = createInterface({ input: engine.#child.stdout })[Symbol.asyncIterator]();
    await engine.#lines.next();
    return engine;
  }

  async run(name) {
    this.#child.stdin.write(`${name}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`the engine ended during '${name}'`);
    return JSON.parse(value);
  }

  end() {
    this.#child.kill();
  }
}

/** What is compared: a command of the program, the figure of its answer, and whether more of it is better. */
const CASES = [
  ["1 stream, tokens in a second of the processor", "rate 1 64", (one) => one.perCpuSecond, ">= 0.8"],
  ["8 streams, the same", "rate 8 64", (one) => one.perCpuSecond, ">= 1.0"],
  ["16 streams, the same", "rate 16 64", (one) => one.perCpuSecond, ">= 1.0"],
  ["first token after 512, ms of the processor", "first 512", (one) => one.cpuMs, "<= 1.1"],
  ["peak of memory so far, MiB", "memory", (one) => one.peakMiB, "<= 1.2"],
];

async function compare(path) {
  const entry = join(path, "dist", "index.js");
  if (!existsSync(entry)) throw new Error(`expected the package node-llama-cpp at ${path}, got nothing`);
  const options = JSON.stringify({ prefixCache: false });
  const engines = { "llama.cpp": await Engine.start("llama.cpp", gguf, entry) };
  for (const [i, directory] of directories.entries())
    engines[`blocks of ${BLOCKS[i]}`] = await Engine.start("tritonjs", directory, options);
  for (const engine of Object.values(engines)) await engine.run("rate 2 16");
  const rows = {};
  const measured = CASES.map(() => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, [, command, figure]] of CASES.entries()) {
      const found = {};
      for (const [name, engine] of Object.entries(engines)) found[name] = figure(await engine.run(command));
      console.log(command, found);
      measured[i].push(found);
    }
  }
  for (const [i, [name, , , asked]] of CASES.entries()) {
    rows[name] = {};
    for (const engine of Object.keys(engines)) {
      rows[name][engine] = short(median(measured[i].map((one) => one[engine])));
      if (engine !== "llama.cpp")
        rows[name][`${engine}, ratio`] = short(
          median(measured[i].map((one) => one[engine] / one["llama.cpp"])),
        );
    }
    rows[name].asked = asked;
  }
  for (const [name, engine] of Object.entries(engines)) {
    const { p50, p99, cpuP50, cpuP99, firstMs } = await engine.run(`gaps ${LONG_PROMPT}`);
    const add = (row, value) => {
      rows[row] = { ...rows[row], [name]: short(value) };
    };
    add(`median gap of 4 streams beside a prompt of ${LONG_PROMPT}, ms`, p50);
    add("99th percentile of the gaps, times the median", p99 / p50);
    add("the same in time of the processor", cpuP99 / cpuP50);
    add("first token of that prompt, s", firstMs / 1000);
    engine.end();
  }
  report("llamacpp", { rows, document: "text-generation.md" });
}

/** The first token of a server that starts with an empty directory, and of one that starts afterwards. */
async function prefixes() {
  const rows = {};
  for (const length of [256, 1000, 4000]) {
    const prefixDirectory = join(folder, `prefixes ${length}`);
    const options = { prefixDirectory, prefillTokens: 256, prefixCacheBytes: 2 ** 28 };
    const start = async () => {
      const engine = await Engine.start("tritonjs", directories[0], JSON.stringify(options));
      // A short prompt, so that all code has run once.
      await engine.run("first 20");
      const found = await engine.run(`first ${length}`);
      await engine.run("close");
      engine.end();
      return found;
    };
    const [first, second] = [await start(), await start()];
    rows[`prompt of ${length} tokens`] = {
      "first start, ms": short(first.ms),
      "second start, ms": short(second.ms),
      ratio: short(second.ms / first.ms),
      "ratio of the processor": short(second.cpuMs / first.cpuMs),
    };
  }
  report("prefixes", { rows, document: "text-generation-decoder.md" });
}

try {
  if (process.env.BENCH_PREFIXES === "1") await prefixes();
  else await compare(process.env.NODE_LLAMA_CPP ?? "node_modules/node-llama-cpp");
} finally {
  rmSync(folder, { recursive: true, force: true });
}
