import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { batch, Triton, TritonError } from "@tritonjs/core";
import { expect, it, onTestFinished } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf } from "../../../../test/support/outcome.js";

interface Line {
  readonly message: string;
  readonly about: unknown;
}

/** A server whose error lines the test reads. */
function loggedTriton(): { triton: Triton; errors: Line[] } {
  const errors: Line[] = [];
  const logger = {
    error: (message: string, about?: unknown) => errors.push({ message, about }),
    warn() {},
    info() {},
    debug() {},
    takesSubjects: true,
  };
  const triton = new Triton({ logger });
  onTestFinished(() => triton.close());
  return { triton, errors };
}

const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;

function fail(): never {
  throw new RangeError("out of cheese");
}

it("logs the stack of a callback's error once for each place that throws", async () => {
  const { triton, errors } = loggedTriton();
  const handle = triton.bind({
    ...specs,
    inferFunc: batch(({ x }) => {
      if (x.data[0] === 9) throw new TypeError("nine");
      return fail();
    }),
  });
  for (const id of ["a", "b"]) await expect(handle.infer({ x: [[1]] }, { id })).rejects.toThrow("cheese");
  await expect(handle.infer({ x: [[9]] }, { id: "c" })).rejects.toThrow("nine");
  expect(errors.map(({ about }) => about)).toEqual([
    { module: "backend_model_instance", model: "m", version: "1", request_id: "a" },
    { module: "backend_model_instance", model: "m", version: "1", request_id: "c" },
  ]);
  const [first, second, third] = errors[0]!.message.split("\n");
  expect(first).toBe("the code of model 'm' version 1 failed in request 'a': RangeError: out of cheese");
  expect(second).toMatch(/ {4}at fail \(.*callback-stacks\.test\.ts:\d+:\d+\)/);
  expect(third).toMatch(/callback-stacks\.test\.ts:\d+:\d+/);
  expect(errors[1]!.message).toMatch(/: TypeError: nine\n.*callback-stacks\.test\.ts/);
});

it("puts the program's own frames before those of packages", async () => {
  const { triton, errors } = loggedTriton();
  const handle = triton.bind({
    ...specs,
    inferFunc: batch(() => {
      const error = new Error("inside");
      error.stack = "Error: inside\n    at f (/app/node_modules/p/i.js:1:1)\n    at mine (/app/model.js:2:3)";
      throw error;
    }),
  });
  await outcomeOf(echo(handle, 1));
  expect(errors[0]!.message.split("\n").slice(1)).toEqual([
    "    at mine (/app/model.js:2:3)",
    "    at f (/app/node_modules/p/i.js:1:1)",
  ]);
});

it("logs no stack for an error that the callback gives to its client", async () => {
  const { triton, errors } = loggedTriton();
  const thrown: unknown[] = [new TritonError("NOT_FOUND", "no such user"), "text", undefined];
  const handle = triton.bind({
    ...specs,
    inferFunc: batch(() => {
      throw thrown.shift();
    }),
  });
  for (let i = 0; i < 3; i++) await outcomeOf(echo(handle, i));
  expect(errors).toEqual([]);
});

it("stops after 64 places, and says so once", async () => {
  const { triton, errors } = loggedTriton();
  let calls = 0;
  const handle = triton.bind({
    ...specs,
    inferFunc: batch(() => {
      const error = new Error("generated");
      error.stack = `Error: generated\n    at mine (/app/model.js:${++calls}:1)`;
      throw error;
    }),
  });
  for (let i = 0; i < 80; i++) await outcomeOf(echo(handle, i));
  expect(errors).toHaveLength(65);
  expect(errors[64]!.message).toMatch(/failed at 64 places/);
});

it("logs the stack of a module in a worker that throws in a request, and while it loads", async () => {
  const { triton, errors } = loggedTriton();
  const directory = mkdtempSync(join(tmpdir(), "tritonjs-stacks-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const bind = (modelName: string, source: string) => {
    const path = join(directory, `${modelName}.mjs`);
    writeFileSync(path, source);
    return triton.bind({ ...specs, modelName, inferFunc: pathToFileURL(path) });
  };
  await outcomeOf(
    echo(bind("thrower", "export default function run() {\n  throw new Error('mine');\n}\n"), 1),
  );
  expect(errors[0]!.message).toMatch(
    /^the code of model 'thrower' version 1 failed in a request: Error: mine\n.*thrower\.mjs:2:9/,
  );
  await outcomeOf(echo(bind("loader", "export default () => {};\nundefined.x;\n"), 1));
  expect(errors[1]!.message).toMatch(
    /^failed to load 'loader' version 1: .*reading 'x'.*\n.*loader\.mjs:2:11/,
  );
});
