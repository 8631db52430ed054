import { type Substitute, Triton } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const engine = identityConfig().replace('backend: "identity"', 'platform: "tensorrt_plan"');
const module =
  "export default async (requests) => requests.map(({ inputs }) => ({ OUTPUT0: inputs.INPUT0 }));";

function serverOf(modelRepository: string, substitutes: readonly Substitute[], log: string[] = []): Triton {
  const write = (text: string) => void log.push(text);
  return new Triton({
    modelRepository,
    substitutes,
    exitOnError: false,
    logger: { error: write, warn: write, info() {}, debug() {} },
  });
}

describe("a substitute", () => {
  it("runs another file with another backend, and is named in the log, the index and the configuration", async () => {
    await using models = await RepositoryOnDisk.create({
      "m/config.pbtxt": `${engine} instance_group [ { kind: KIND_CPU profile: [ "1" ] } ]`,
      "m/1/model.plan": "engine",
      "m/1/other.mjs": module,
    });
    const log: string[] = [];
    const use = { backend: "javascript", file: "other.mjs", parameters: { mode: "fast" } };
    await using triton = serverOf(models.path, [{ platform: "tensorrt_plan", use }], log);
    await triton.ready();
    const stands = "for 'tensorrt_plan': backend 'javascript' with 'other.mjs'";
    expect(log).toEqual([`model 'm' has a substitute ${stands}`]);
    expect(await triton.service.repositoryIndex(false)).toEqual([
      { name: "m", version: "1", state: "READY", reason: `a substitute ${stands}` },
    ]);
    expect(triton.service.model("m", "").config).toMatchObject({
      backend: "javascript",
      defaultModelFilename: "other.mjs",
      parameters: { substitute: { stringValue: stands }, mode: { stringValue: "fast" } },
    });
    expect([...(await triton.infer("m", { INPUT0: [[5]] })).OUTPUT0!.data]).toEqual([5]);
  });

  it("is for the models that all of its fields name; the first rule counts", async () => {
    await using models = await RepositoryOnDisk.create({
      "a/config.pbtxt": engine,
      "a/1/": "",
      "b/config.pbtxt": engine,
      "b/1/": "",
      "c/config.pbtxt": identityConfig(),
      "c/1/": "",
    });
    await using triton = serverOf(models.path, [
      { model: "a", platform: "onnxruntime_onnx", use: { backend: "javascript" } },
      { model: "a", platform: "tensorrt_plan", use: { backend: "identity" } },
      { platform: "tensorrt_plan", use: { backend: "square" } },
    ]);
    await triton.ready();
    const rows = await triton.service.repositoryIndex(false);
    expect(rows.map(({ name, state }) => [name, state])).toEqual([
      ["a", "READY"],
      ["b", "UNAVAILABLE"],
      ["c", "READY"],
    ]);
    expect(rows[1]!.reason).toContain("Invalid argument");
    expect(rows[2]!.reason).toBeUndefined();
  });

  it("for a model that does not exist is reported, and the others serve", async () => {
    await using models = await RepositoryOnDisk.create({ "c/config.pbtxt": identityConfig(), "c/1/": "" });
    const log: string[] = [];
    await using triton = serverOf(models.path, [{ model: "ghost", use: { backend: "identity" } }], log);
    await triton.ready();
    expect(log).toEqual(["a substitute is for model 'ghost', but no repository has such a model"]);
    expect(triton.service.isModelReady("c", "")).toBe(true);
  });

  it.each<[rules: unknown, fault: string]>([
    [{}, "substitutes: expected a list of rules, got object"],
    [[{ use: { backend: "identity" } }], "substitutes[0]: expected model, backend or platform, got none"],
    [[{ model: "a", us: {} }], "substitutes[0] has an unknown option 'us': did you mean 'use'?"],
    [[{ model: 5, use: { backend: "" } }], "substitutes[0].model: expected a text, got 5"],
    [
      [{ model: "a", use: { backend: "x", parameters: { n: 1 } } }],
      "parameters.n: expected a string, got number",
    ],
    [["a"], "substitutes[0]: expected an object, got string"],
  ])("with a fault is refused: %j", (rules, fault) => {
    expect(() => serverOf("/nowhere", rules as Substitute[])).toThrow(fault);
  });
});
