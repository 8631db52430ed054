import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton, TritonError } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import { describe, expect, it } from "vitest";
import { roundsOnnx } from "../../../../test/support/onnx-models.js";
import { outcomesOf } from "../../../../test/support/outcome.js";
import { Program } from "../../../../test/support/program.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { SeededRandom } from "../../../../test/support/seeded-random.js";

const program = fileURLToPath(
  new URL("../../../core/test/behaviours/fixtures/exits-during-native-runs.mjs", import.meta.url),
);

describe("the engine 'native'", () => {
  it.each(["exit", "throw"].flatMap((way) => ["runs", "loads"].map((during) => ({ way, during }))))(
    "lets the process end by $way while it $during",
    async ({ way, during }) => {
      await using folder = await RepositoryOnDisk.create({ "rounds.onnx": roundsOnnx() });
      const args = ["--expose-gc", program, join(folder.path, "rounds.onnx"), way, during];
      for (let time = 0; time < 4; time++) {
        const { code, signal, stderr } = await new Program(process.execPath, args, { cwd: repositoryRoot })
          .ended;
        expect({ code, signal }).toEqual({ code: way === "exit" ? 3 : 1, signal: null });
        if (way === "exit") expect(stderr).toBe("");
        else expect(stderr).toContain("ends the program");
      }
    },
  );

  it("answers every request once, and its own rows, under cancellations, time limits, loads and unloads", async () => {
    const numbers = new SeededRandom(22);
    const random = () => numbers.next();
    const parameters = [
      ["engine", "native"],
      ["execution_timeout_ms", "400"],
    ].map(([key, value]) => `{ key: "${key}" value: { string_value: "${value}" } }`);
    await using repository = await RepositoryOnDisk.create({
      "rounds/1/model.onnx": roundsOnnx(),
      "rounds/config.pbtxt": `backend: "onnxruntime" max_batch_size: 8 dynamic_batching { }
        instance_group [ { count: 3 kind: KIND_CPU } ] parameters [ ${parameters.join(", ")} ]`,
    });
    const triton = new Triton({
      exitTimeoutSecs: 0,
      extensions: [
        withRepository({
          modelRepository: repository.path,
          modelControlMode: "explicit",
          loadModel: ["rounds"],
        }),
      ],
    });
    await triton.ready();
    const codes = new Map<string, number>();
    const request = async (): Promise<void> => {
      const x = random() < 0.05 ? 1e9 : Math.floor(random() * 20);
      const controller = new AbortController();
      const timeoutMs = random() < 0.2 ? 1 + random() * 50 : undefined;
      if (random() < 0.2) setTimeout(() => controller.abort(), random() * 30);
      let code = "done";
      try {
        const options = { signal: controller.signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
        const { y } = await triton.infer("rounds", { x: [[x]] }, options);
        expect([...(y!.data as Float32Array)]).toEqual([x + 1]);
      } catch (error) {
        if (!TritonError.is(error)) throw error;
        code = error.code;
      }
      codes.set(code, (codes.get(code) ?? 0) + 1);
    };
    let loaded: Promise<void> = Promise.resolve();
    const client = async (): Promise<void> => {
      for (let i = 0; i < 40; i++) {
        await loaded;
        await request();
      }
    };
    const reloads = async (): Promise<void> => {
      for (let i = 0; i < 6; i++) {
        await new Promise((resolve) => setTimeout(resolve, 100 * random()));
        const unloaded = i % 2 === 0 ? triton.unloadModel("rounds") : Promise.resolve();
        loaded = unloaded.then(() => triton.loadModel("rounds"));
        await loaded;
      }
    };
    await Promise.all([...Array.from({ length: 12 }, client), reloads()]);
    expect([...codes.values()].reduce((sum, count) => sum + count)).toBe(12 * 40);
    expect(codes.get("done")).toBeGreaterThan(40);
    expect([...codes.keys()].filter((code) => !["done", "CANCELLED", "UNAVAILABLE"].includes(code))).toEqual(
      [],
    );
    // The model still works.
    const { y } = await triton.infer("rounds", { x: [[3]] });
    expect([...(y!.data as Float32Array)]).toEqual([4]);
    await triton.close();
  });

  it("frees its memory when the last instance ends, and can be loaded again", async () => {
    await using folder = await RepositoryOnDisk.create({});
    const file = join(folder.path, "rounds.onnx");
    await writeFile(file, roundsOnnx());
    for (let time = 0; time < 5; time++) {
      const triton = new Triton({ exitTimeoutSecs: 0 });
      const handle = triton.bind({
        modelName: "rounds",
        inferFunc: onnxruntime({ model: file, engine: "native" }),
        config: { instanceGroup: [{ count: 4 }] },
      });
      const answers = [1, 2, 1e9, 1e9].map((x) => handle.inferBatch({ x: [[x]] }));
      const outcomes = outcomesOf(answers);
      await expect.poll(() => handle.instances().some(({ busy }) => busy)).toBe(true);
      await triton.close();
      for (const outcome of await outcomes) expect(outcome).toMatch(/^(done|UNAVAILABLE)/);
    }
  });
});
