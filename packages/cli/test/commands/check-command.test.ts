import { join } from "node:path";
import { expect, it } from "vitest";
import { sampleModel } from "../../src/commands/sample-model.js";
import { run } from "../../src/run.js";
import { TemporaryFolder } from "../support/temporary-folder.js";
import { TestTerminal } from "../support/test-terminal.js";

const config = (name: string) => `
  name: "${name}" backend: "javascript" max_batch_size: 8
  input { name: "x" data_type: TYPE_FP32 dims: 2 }
  output { name: "y" data_type: TYPE_FP32 dims: 2 }`;

/** A module with a plain callback. */
const model = (compute: string) => `export default (requests) => requests.map(({ inputs }) => {
  const { data } = inputs.x;
  return { y: ${compute} };
});`;
const quick = ["--runs", "20", "--samples", "4", "--skip", "memory"];

it("checks the models of a repository and prints a report of each", async () => {
  await using folder = await TemporaryFolder.create({
    "broken/config.pbtxt": "no config",
    "double/config.pbtxt": config("double"),
    "double/1/model.js": model("data.map((value) => 2 * value)"),
    "random/config.pbtxt": config("random"),
    "random/1/model.js": model("data.map(() => Math.random())"),
  });
  const terminal = new TestTerminal();
  expect(await run(["check", folder.path, ...quick], terminal)).toBe(1);
  expect(terminal.output).toMatch(/^double: \d passed, 0 failed, \d skipped\n {2}ok {4}repeatability$/m);
  expect(terminal.output).toMatch(
    /^random: \d passed, \d failed, \d skipped\n {2}FAIL {2}repeatability {2}sample 0 answered again: output 'y': /m,
  );
  expect(terminal.errors).toContain("broken: cannot be checked: ");
  const one = new TestTerminal();
  expect([await run(["check", join(folder.path, "double"), ...quick, "--json"], one), one.errors]).toEqual([
    0,
    "",
  ]);
  expect(JSON.parse(one.output)).toMatchObject([{ model: "double", ok: true }]);
});

it("checks a model file, with inputs that a module makes", async () => {
  await using folder = await TemporaryFolder.create({
    "classifier.onnx": sampleModel(),
    "inputs.mjs": "export default (index, random) => ({ features: [index, random(), 2, 3] });",
    "none.mjs": "export const inputs = 1;",
    "other.txt": "text",
  });
  const at = (name: string) => join(folder.path, name);
  const terminal = new TestTerminal();
  const args = ["check", at("classifier.onnx"), "--inputs", at("inputs.mjs"), "--runs", "20"];
  expect([await run(args, terminal), terminal.errors]).toEqual([0, ""]);
  expect(terminal.output).toMatch(/^classifier: 10 passed, 0 failed, 0 skipped$/m);
  for (const [more, text] of [
    [["check", at("classifier.onnx"), "--inputs", at("none.mjs")], "--inputs: expected a function"],
    [
      ["check", at("classifier.onnx"), "--runs", "many"],
      "--runs: expected a number of at least 0, got 'many'",
    ],
    [
      ["check", at("other.txt")],
      "expected a model repository, a model in one, or a model file, got another file",
    ],
    [["check", at("gone")], "got a path that does not exist"],
    [["check", at("classifier.onnx"), "--skip", "all"], "skip: expected repeatability, batch"],
  ] as const) {
    const other = new TestTerminal();
    expect(await run(more, other)).toBe(1);
    expect(other.errors).toContain(text);
  }
});
