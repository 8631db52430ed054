import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { otherRuntime } from "../package/foreign-tools.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

/** Lines of `everywhere.mjs` that are the same on each runtime. */
const SAME = [
  "inline 7",
  "worker 7",
  "process 7",
  "onnx worker worker 0.9980",
  "onnx worker process 0.9980",
  "onnx wasm worker 0.9980",
  "onnx wasm process 0.9980",
  "stream 0,1,2",
  "served 4 5",
  "closed",
];

/** Lines that differ, with the words by which a runtime refuses what it cannot do. */
const DIFFERENT = {
  node: ["onnx native inline 0.9980", "frontend threads 4 5", "shared memory created and destroyed"],
  bun: [
    "onnx native inline UNSUPPORTED PLATFORM_NOT_SUPPORTED engine 'native': expected Node.js or Deno, got Bun",
    "frontend threads UNSUPPORTED PLATFORM_NOT_SUPPORTED frontend threads: expected Node.js or Deno, got Bun",
    "shared memory created and destroyed",
  ],
  deno: [
    "onnx native inline 0.9980",
    "frontend threads 4 5",
    "shared memory UNSUPPORTED PLATFORM_NOT_SUPPORTED Shared memory feature is currently not supported on Deno",
  ],
};

const node = { path: process.execPath, note: "", args: [] };

describe.each([
  { name: "node" as const, title: "Node", runtime: node },
  { name: "bun" as const, title: "Bun", runtime: otherRuntime("bun") },
  { name: "deno" as const, title: "Deno", runtime: otherRuntime("deno") },
])("on $title", ({ name, runtime: { path, note, args } }) => {
  it.skipIf(path === undefined)(`works, or is refused by name${note}`, async () => {
    const program = join(import.meta.dirname, "everywhere.mjs");
    const { code, stdout, stderr } = await new Program(path!, [...args, program], { cwd: repositoryRoot })
      .ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const lines = stdout.trimEnd().split("\n");
    expect(lines.toSorted()).toEqual([...SAME, ...DIFFERENT[name]].toSorted());
  });

  /** Longer than the two minutes that it takes on two cores. */
  const timeout = 900_000;
  test.skipIf(name === "node" || path === undefined)(
    `npm run test:runtimes passes${note}`,
    { timeout },
    async () => {
      const env = Object.fromEntries(
        Object.keys(process.env)
          .filter((key) => key.startsWith("VITEST"))
          .map((key) => [key, undefined]),
      );
      const script = join(repositoryRoot, "scripts", "test-runtimes.mjs");
      const { code, stdout } = await new Program(process.execPath, [script, "--built", name], {
        cwd: repositoryRoot,
        env,
      }).ended;
      expect({ code, output: code === 0 ? "" : stdout.slice(-5000) }).toEqual({ code: 0, output: "" });
      expect(Number(/Tests .*?(\d+) passed/.exec(stdout)?.[1])).toBeGreaterThan(1000);
    },
  );
});
