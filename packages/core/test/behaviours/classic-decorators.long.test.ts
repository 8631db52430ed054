import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { batch, padBatch, type StyledInferFunc, Triton } from "@tritonjs/core";
import { rolldown } from "rolldown";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { importCompiled } from "../../../../test/support/compile-fixture.js";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { repositoryRoot } from "../../../../test/support/repository.js";

type Owners = typeof import("../../../../test/support/decorated/method-owners.js");

const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;

let triton: Triton;
beforeEach(() => {
  triton = new Triton();
});
afterEach(() => triton.close());

/** Binds callbacks as versions of one model and infers 5 with each. */
async function answers(...methods: readonly Owners["Scale"]["prototype"]["rows"][]): Promise<number[]> {
  const handles = methods.map((inferFunc, i) => triton.bind({ ...specs, modelVersion: i + 1, inferFunc }));
  return Promise.all(handles.map((handle) => echo(handle, 5)));
}

describe("decorators compiled with experimentalDecorators", () => {
  const owners = () =>
    importCompiled<Owners>(
      new URL("../../../../test/support/decorated/method-owners.ts", import.meta.url),
      "classic",
    );

  it("bind a method to its object, and a static one to its class", async () => {
    const { Scale } = await owners();
    expect(await answers(new Scale(2).rows, new Scale(3).rows, Scale.rows)).toEqual([10, 15, 50]);
    const model = new Scale(2);
    expect(model.rows).toBe(model.rows);
    expect(Object.freeze(model).rows).toBe(model.rows);
  });

  it("bind the method of a subclass, with or without decorators of its own", async () => {
    const { Scale, ScaleAndAdd } = await owners();
    class Plain extends Scale {}
    // What `super.rows` reads.
    const base: Owners["Scale"]["prototype"]["rows"] = Reflect.get(
      Scale.prototype,
      "rows",
      new ScaleAndAdd(5),
    );
    expect(await answers(new ScaleAndAdd(2).rows, new Plain(4).rows, base)).toEqual([11, 20, 25]);
  });

  it("leave a method that can be replaced, and that its prototype shows unbound", async () => {
    const { Scale } = await owners();
    const [replaced, other] = [new Scale(2), new Scale(2)];
    const fn = batch<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x }));
    replaced.rows = fn as StyledInferFunc<never, never> as never;
    expect(replaced.rows).toBe(fn);
    expect(await answers(replaced.rows, other.rows)).toEqual([5, 10]);
    expect(Scale.prototype.rows).toBe(Scale.prototype.rows);
    expect(Scale.prototype.rows).not.toBe(other.rows);
    expect(Object.keys(other)).toEqual(["factor"]);
  });

  it("work in PyTriton's order, one on the other", async () => {
    const { StackedModel } = await importCompiled<
      typeof import("../../../../test/support/decorated/stacked-model.js")
    >(new URL("../../../../test/support/decorated/stacked-model.ts", import.meta.url), "classic");
    const model = new StackedModel(2);
    const handle = triton.bind({
      modelName: "m",
      inputs: [
        { name: "x", dtype: "FP32", shape: [1] },
        { name: "t", dtype: "FP32", shape: [1], optional: true },
      ],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: model.run as never,
    });
    expect([...(await handle.infer({ x: [[4]] })).y.data]).toEqual([4]);
    expect([...(await handle.infer({ x: [[1], [2], [3]], t: [[3], [1], [3]] })).y.data]).toEqual([6, 4, 18]);
    expect(model.seen).toEqual([
      ["m", 0.5],
      ["m", 3],
      ["m", 1],
    ]);
  });

  it("work as a bundler compiles them", async () => {
    const file = join(repositoryRoot, "node_modules/.cache/compiled-fixtures/bundler/method-owners.mjs");
    const bundle = await rolldown({
      input: fileURLToPath(new URL("../../../../test/support/decorated/method-owners.ts", import.meta.url)),
      external: /^@tritonjs/,
      tsconfig: false,
      transform: { decorator: { legacy: true } },
    });
    await bundle.write({ file });
    await bundle.close();
    const { Scale, ScaleAndAdd } = (await import(pathToFileURL(file).href)) as Owners;
    expect(await answers(new Scale(2).rows, new ScaleAndAdd(2).rows, Scale.rows)).toEqual([10, 11, 50]);
  });
});

describe("a classic decorator", () => {
  const decorate = batch as (target: object, name: string, descriptor?: PropertyDescriptor) => unknown;

  it.each([
    ["a property without a method", undefined],
    ["an accessor", { get: () => 1, configurable: true }],
    ["a method that is none", { value: 7, configurable: true }],
  ])("rejects %s", (_, descriptor) => {
    expect(() => decorate({}, "run", descriptor)).toThrow(
      new TypeError("@batch: expected a method to decorate, got property 'run'"),
    );
  });

  it("is rejected in an order that cannot work", () => {
    const once = decorate({}, "run", { value: () => ({}), configurable: true }) as PropertyDescriptor;
    expect(() => (padBatch as typeof decorate)({}, "run", once)).toThrow(
      "The @padBatch decorator must be used after the @batch decorator.",
    );
    expect(() => decorate({}, "run", once)).toThrow("@batch and @batch cannot decorate");
  });
});
