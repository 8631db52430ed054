import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { TreeModel, trees } from "@tritonjs/backends/trees";
import { Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { repositoryRoot } from "../../../../test/support/repository.js";

const fixtures = join(repositoryRoot, "packages/backends/test/trees/fixtures");
const fixture = (name: string) => join(fixtures, name);

/** Rows that differ. */
const rows = (count: number, columns = 6) =>
  Array.from({ length: count }, (_, row) =>
    Array.from({ length: columns }, (_, column) =>
      column === row % 7 ? Number.NaN : Math.sin(row * 7 + column),
    ),
  );
const flat = (of: readonly (readonly number[])[]) => Float32Array.from(of.flatMap((row) => [...row]));

let triton: Triton;
beforeEach(() => {
  triton = new Triton();
});
afterEach(() => triton.close());

describe("a tree model that is bound", () => {
  it("needs no specifications: features and classes are those of the file", async () => {
    const handle = triton.bind({ modelName: "m", inferFunc: trees({ model: fixture("multiclass.ubj") }) });
    expect(handle.metadata()).toMatchObject({
      inputs: [{ name: "input__0", datatype: "FP32", shape: [-1, 6] }],
      outputs: [{ name: "output__0", datatype: "FP32", shape: [-1, 3] }],
    });
    const { output__0 } = await triton.infer("m", { input__0: rows(5) });
    expect(output__0!.shape).toEqual([5, 3]);
    expect(output__0!.data).toEqual(
      new TreeModel({ model: fixture("multiclass.ubj") }).predict(flat(rows(5))),
    );
  });

  it("answers requests of one batch separately", async () => {
    const model = fixture("binary.json");
    const handle = triton.bind({
      modelName: "m",
      inferFunc: trees({ model, isClassifier: true, predictProba: true, bothClasses: true }),
    });
    const answers = await Promise.all(rows(20).map((row) => handle.inferSample({ input__0: row })));
    const expected = new TreeModel({ model }).predict(flat(rows(20)));
    for (const [i, { output__0 }] of answers.entries()) {
      expect([...(output__0!.data as Float32Array)]).toEqual([Math.fround(1 - expected[i]!), expected[i]]);
    }
    expect(handle.statistics()).toMatchObject({ inferenceCount: 20 });
  });

  it("scores large batches in a worker thread once one has started, with the same answers", async () => {
    const started: unknown[] = [];
    // The first message of a thread says that it is ready.
    let isReady: Promise<unknown> | undefined;
    const onThread = (message: unknown) => {
      started.push(message);
      isReady = once((message as { readonly worker: Worker }).worker, "message");
    };
    subscribe("worker_threads", onThread);
    try {
      const model = fixture("binary.json");
      const handle = triton.bind({ modelName: "m", inferFunc: trees({ model, treeShap: true }) });
      const [few, many] = [rows(3), rows(900)];
      const expected = new TreeModel({ model, treeShap: true });
      const [predicted, explained] = [expected.predict(flat(many)), expected.explain(flat(many))];
      const small = async () => {
        const { output__0 } = await handle.inferBatch({ input__0: few });
        expect(output__0!.data).toEqual(expected.predict(flat(few)));
      };
      await small();
      expect(started).toEqual([]);
      for (let i = 0; i < 4; i++) {
        const [{ output__0, treeshap_output }] = await Promise.all([
          handle.inferBatch({ input__0: many }),
          small(),
        ]);
        expect(output__0!.data).toEqual(predicted);
        expect(treeshap_output!.data).toEqual(explained);
        await isReady;
      }
      expect(started).toHaveLength(availableParallelism() > 1 ? 1 : 0);
    } finally {
      unsubscribe("worker_threads", onThread);
    }
  });

  it("stays on its thread with large batches if the instance group says inline", async () => {
    const started: unknown[] = [];
    const onThread = (message: unknown) => started.push(message);
    subscribe("worker_threads", onThread);
    try {
      const model = fixture("binary.json");
      const handle = triton.bind({
        modelName: "m",
        inferFunc: trees({ model, treeShap: true }),
        config: { instanceGroup: { isolation: "inline" } },
      });
      const many = rows(900);
      const { output__0 } = await handle.inferBatch({ input__0: many });
      expect(output__0!.data).toEqual(new TreeModel({ model }).predict(flat(many)));
      expect(started).toEqual([]);
    } finally {
      unsubscribe("worker_threads", onThread);
    }
  });

  it("closes while a large batch runs and its worker starts", async () => {
    const model = fixture("binary.json");
    const handle = triton.bind({ modelName: "m", inferFunc: trees({ model, treeShap: true }) });
    const many = rows(900);
    const expected = new TreeModel({ model }).predict(flat(many));
    await handle.ready();
    const answer = handle.inferBatch({ input__0: many });
    await triton.close();
    expect((await answer).output__0!.data).toEqual(expected);
  });

  it("runs in worker threads that share the model, with the same answers", async () => {
    const model = fixture("categorical.json");
    const handle = triton.bind({
      modelName: "m",
      inferFunc: trees({ model, treeShap: true }),
      config: { maxBatchSize: 64, instanceGroup: { count: 2, isolation: "worker" } },
    });
    const there = await Promise.all(rows(12).map((row) => handle.inferBatch({ input__0: [row, row] })));
    expect(handle.instances().map(({ isolation }) => isolation)).toEqual(["worker", "worker"]);
    const here = new TreeModel({ model, treeShap: true });
    for (const [i, { output__0, treeshap_output }] of there.entries()) {
      const both = flat([rows(12)[i]!, rows(12)[i]!]);
      expect(output__0!.data).toEqual(here.predict(both));
      expect(treeshap_output!.data).toEqual(here.explain(both));
    }
  });

  it("lets the event loop take turns during a large batch", async () => {
    const handle = triton.bind({
      modelName: "m",
      inferFunc: trees({ model: fixture("deep.json"), treeShap: true }),
      config: { maxBatchSize: 4096 },
    });
    const input = rows(800);
    await handle.inferBatch({ input__0: input.slice(0, 1) });
    let turns = 0;
    let running = true;
    const count = () => {
      turns++;
      if (running) setImmediate(count);
    };
    setImmediate(count);
    await handle.inferBatch({ input__0: input });
    running = false;
    expect(turns).toBeGreaterThan(5);
  });

  it("uses the first boosting rounds, or those up to the best one", () => {
    const first = new TreeModel({ model: fixture("multiclass.json"), rounds: 3 }).predict(flat(rows(2)));
    const all = new TreeModel({ model: fixture("multiclass.json") }).predict(flat(rows(2)));
    expect(first).not.toEqual(all);
    const document = JSON.parse(readFileSync(fixture("multiclass.json"), "utf8"));
    document.learner.attributes.best_iteration = "2";
    const stopped = Buffer.from(JSON.stringify(document));
    expect(new TreeModel({ model: stopped, rounds: "best" }).predict(flat(rows(2)))).toEqual(first);
    expect(new TreeModel({ model: stopped }).predict(flat(rows(2)))).toEqual(all);
    expect(thrownBy(() => trees({ model: fixture("multiclass.json"), rounds: 5 }))).toBe(
      "INVALID_ARG rounds: expected an integer from 1 to 4, got 5",
    );
  });

  it("says what is wrong with options and rows", async () => {
    expect(thrownBy(() => trees({ model: "/no/such.json" }))).toMatch(
      /^NOT_FOUND cannot read the tree model '\/no\/such\.json': /,
    );
    expect(thrownBy(() => trees({ model: fixture("multiclass.json"), bothClasses: true }))).toBe(
      "INVALID_ARG probabilities of both classes: expected a binary classifier with predict_proba, got another model",
    );
    expect(thrownBy(() => trees({ model: fixture("binary.json"), threshold: Number.NaN }))).toBe(
      "INVALID_ARG threshold: expected a number, got NaN",
    );
    const model = new TreeModel({ model: fixture("binary.json") });
    expect(thrownBy(() => model.predict(new Float32Array(7)))).toBe(
      "INVALID_ARG rows: expected a Float32Array of a multiple of 6 values, got 7",
    );
    expect(thrownBy(() => model.explain(new Float32Array(6)))).toBe(
      "INVALID_ARG explain: expected the option treeShap, got a model without it",
    );
    triton.bind({ modelName: "m", inferFunc: trees({ model: fixture("binary.json") }) });
    expect(await outcomeOf(triton.infer("m", { input__0: [[1, 2, 3]] }))).toMatch(/^INVALID_ARG .*\[1,3\]/);
  });
});
