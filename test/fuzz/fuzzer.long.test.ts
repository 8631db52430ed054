import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runInThisContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import type { Finding } from "./engine/finding.js";
import { Fuzzer, type FuzzOptions } from "./engine/fuzzer.js";
import { supervise } from "./engine/supervisor.js";
import type { FuzzTarget } from "./engine/target.js";

/** Runs a target and returns what was found. */
async function findingsOf(target: FuzzTarget, options: Partial<FuzzOptions> = {}): Promise<Finding[]> {
  const findings: Finding[] = [];
  const onFinding = (finding: Finding) => void findings.push(finding);
  await new Fuzzer(target, { seed: 1, runs: 4000, ...options, onFinding }).run();
  return findings;
}

/** A check that fails for inputs that begin with four letters, which it compares one by one. */
const nested = runInThisContext(
  `(input) => {
    if (input[0] === 70) { if (input[1] === 85) { if (input[2] === 90) { if (input[3] === 89) throw new Error("found"); } } }
    return "ok";
  }`,
  { filename: "file:///packages/nested.js" },
) as FuzzTarget["run"];

test("finds by coverage what random inputs do not reach", async () => {
  const target = { seeds: [Buffer.from("abcd")], tokens: ["F", "U", "Z", "Y"], run: nested };
  const guided = await findingsOf(target, { runs: 20_000, coverageShare: 1 });
  expect(guided.map(({ text }) => text)).toEqual([expect.stringContaining("found")]);
  const blind = await findingsOf(target, { runs: 20_000, coverage: false });
  expect(blind).toEqual([]);
});

test("reduces an input to the bytes that show the fault", async () => {
  const run = (input: Uint8Array) => {
    if (Buffer.from(input).includes("bad")) throw new Error("a fault");
    return "ok";
  };
  const [finding] = await findingsOf({ seeds: [Buffer.from("a good input")], tokens: ["bad"], run });
  expect(Buffer.from(finding!.input).toString()).toBe("bad");
});

test("reports an error that nobody handled, with the input after which it came", async () => {
  const run = (input: Uint8Array) => {
    if (Buffer.from(input).includes("late")) void Promise.reject(new Error("a late fault"));
    return "ok";
  };
  const [finding] = await findingsOf({ seeds: [Buffer.from("x")], tokens: ["late"], run }, { runs: 500 });
  expect(finding!.text).toContain("not handled: Error: a late fault");
  expect(Buffer.from(finding!.input).toString()).toContain("late");
});

test("reports a good input that is no longer answered right", async () => {
  let runs = 0;
  const check = () => {
    if (runs > 100) throw new Error("another answer");
  };
  const run = () => {
    runs++;
    return "ok";
  };
  const findings = await findingsOf(
    { seeds: [Buffer.from("x")], run, check },
    { runs: 200, coverage: false },
  );
  expect(findings.map(({ text }) => text)).toEqual([expect.stringContaining("another answer")]);
});

test("the same seed gives the same inputs", async () => {
  const inputsOf = async (seed: number) => {
    const inputs: string[] = [];
    const run = (input: Uint8Array) => {
      inputs.push(Buffer.from(input).toString("hex"));
      return "ok";
    };
    await findingsOf(
      { seeds: [Buffer.from("one"), Buffer.from("two")], run },
      { seed, runs: 50, coverage: false },
    );
    return inputs.join();
  };
  expect(await inputsOf(7)).toBe(await inputsOf(7));
  expect(await inputsOf(7)).not.toBe(await inputsOf(8));
});

test("finds the input that ends the process", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-fuzz-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const program = join(folder, "program.mjs");
  // Writes three inputs as the fuzzing process does, and ends itself with the second.
  writeFileSync(
    program,
    `import { readFileSync, writeFileSync } from "node:fs";
    const { file, repeat } = JSON.parse(process.argv[2]);
    const number = (value) => { const bytes = Buffer.alloc(4); bytes.writeUInt32LE(value); return bytes; };
    const inputs = ["first", "second", "third"].map((text) => Buffer.from(text));
    if (!repeat) writeFileSync(file, Buffer.concat([number(1), number(3), ...inputs.flatMap((one) => [number(one.length), one])]));
    for (const [index, input] of inputs.entries()) {
      if (input.includes("second")) process.exit(3);
      if (repeat) process.send({ kind: "ran", index });
    }`,
  );
  const findings: Finding[] = [];
  await supervise({
    target: "any",
    program,
    seed: 1,
    runs: 3,
    coverage: false,
    hangMs: 50_000,
    restarts: 0,
    onFinding: (finding) => void findings.push(finding),
    onProgress() {},
  });
  expect(findings).toEqual([{ text: "the process ends with exit code 3", input: Buffer.from("second") }]);
});
