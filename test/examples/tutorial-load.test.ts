import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { expect, it, onTestFinished } from "vitest";
import { Program } from "../support/program.js";
import { hasPython, pythonProgram, withoutPython } from "../support/python.js";
import { repositoryRoot } from "../support/repository.js";

const locustfile = join(repositoryRoot, "examples/tutorials/load/locustfile.py");
const standIn = join(repositoryRoot, "test/examples/locust-stand-in/locust.py");

/** Runs the locustfile with a stand-in of Locust. @returns requests and failures by name */
async function load(fails: boolean): Promise<unknown> {
  const triton = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
  onTestFinished(() => triton.close());
  triton.bind({
    modelName: "echo",
    inputs: [
      { name: "x", dtype: "FP32", shape: [-1] },
      { name: "text", dtype: "BYTES", shape: [1] },
    ],
    outputs: [{ name: "y", dtype: "BYTES", shape: [1] }],
    inferFunc: (requests) =>
      requests.map(({ inputs: { x, text } }) => {
        expect([x.shape, text.shape]).toEqual([
          [2, 8],
          [2, 1],
        ]);
        if (fails) throw new Error("no weights");
        return { y: text };
      }),
    config: { maxBatchSize: 4 },
  });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0, address: "127.0.0.1" })] });
  const args = [standIn, locustfile, `--host=${addresses.http!.url}`, "--model=echo", "--rows=2"];
  const { code, stdout, stderr } = await new Program(pythonProgram, args, { cwd: repositoryRoot }).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

const read = { requests: 2, failures: [] };

it.skipIf(!hasPython)(`a server answers each request of the locustfile${withoutPython}`, async () => {
  const sent = { requests: 10, failures: [] };
  expect(await load(false)).toEqual({
    config: read,
    metadata: read,
    "infer as JSON": sent,
    "infer in binary": sent,
  });
});

it.skipIf(!hasPython)(`the locustfile reports each failed request${withoutPython}`, async () => {
  const failures = Array(10).fill(expect.stringContaining("no weights"));
  expect(await load(true)).toMatchObject({ "infer as JSON": { failures }, "infer in binary": { failures } });
});
