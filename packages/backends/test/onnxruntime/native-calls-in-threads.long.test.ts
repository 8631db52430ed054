import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { irisModel } from "../../../../test/support/iris.js";
import { Program } from "../../../../test/support/program.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const fixture = (name: string) =>
  new URL(`../../../core/test/behaviours/fixtures/${name}.mjs`, import.meta.url);
const model = fileURLToPath(irisModel);

const config = (parameters: string) => `backend: "javascript"
input [ { name: "x" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_INT32 dims: [ 1 ] } ]
parameters [ ${parameters} ]`;
const parameter = (key: string, value: string) => `{ key: "${key}" value: { string_value: "${value}" } }`;

it("a thread that is in ONNX Runtime, or is loading it, can be ended without ending the program", async () => {
  const module = `export { default, initialize } from ${JSON.stringify(fixture("stays-in-native-calls").href)};`;
  await using repository = await RepositoryOnDisk.create({
    "loads/config.pbtxt": config(`${parameter("loads", "yes")}, ${parameter("load_timeout_seconds", "1")}`),
    "loads/1/model.mjs": module,
    "runs/config.pbtxt": config(parameter("execution_timeout_ms", "200")),
    "runs/1/model.mjs": module,
  });
  const packages = fileURLToPath(new URL("packages/backends/package.json", `file://${repositoryRoot}/`));
  const program = new Program(
    process.execPath,
    [fileURLToPath(fixture("ends-native-calls")), repository.path, model],
    {
      cwd: repositoryRoot,
      env: { TRITONJS_TEST_NATIVE_CALLS: JSON.stringify({ packages, model }) },
    },
  );
  const { code, signal, stdout, stderr } = await program.ended;
  const stopped = "instance 'runs_0' of model 'runs' was ended: its batch ran for more than 200 ms";
  expect({ code, signal, stderr, lines: stdout.trim().split("\n") }).toEqual({
    code: 5,
    signal: null,
    stderr: "",
    lines: [
      expect.stringContaining("'loads' was ended: its model did not load within 1000 ms"),
      stopped,
      stopped,
      stopped,
    ],
  });
});
