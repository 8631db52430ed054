import { Tensor, Triton } from "@tritonjs/core";
import type { BackendFactory } from "@tritonjs/core/backend";
import { expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

/** A backend that answers with the version. */
const versions: BackendFactory = ({ version }) => ({
  backendName: "versions",
  platform: "",
  describe: () => undefined,
  createExecutor: () => ({
    details: {},
    mustFinish: false,
    start: async () => {},
    execute: async ({ requests }) =>
      requests.map(
        () => new Map([["OUTPUT0", Tensor.fromElements("FP32", [1, 1], Float32Array.of(version))]]),
      ),
    stop: async () => {},
  }),
});

const ensemble = (name: string) => `
  name: "${name}" platform: "ensemble" max_batch_size: 4
  input { name: "IN" data_type: TYPE_FP32 dims: 1 } output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
  ensemble_scheduling { step { model_name: "m" model_version: -1
    input_map { key: "INPUT0" value: "IN" } output_map { key: "OUTPUT0" value: "OUT" } } }`;

it("a rollout tells versions of equal names in two repositories apart", async () => {
  const config = identityConfig("version_policy { all {} }")
    .replace('"identity"', '"versions"')
    .replaceAll("TYPE_INT32", "TYPE_FP32");
  const repository = (name: string) =>
    RepositoryOnDisk.create({
      "m/config.pbtxt": config,
      "m/1/": "",
      "m/2/": "",
      [`${name}/config.pbtxt`]: ensemble(name),
      [`${name}/1/`]: "",
    });
  await using one = await repository("e1");
  await using two = await repository("e2");
  await using triton = new Triton({
    modelRepository: [one.path, two.path],
    modelNamespacing: true,
    backends: { versions },
    logger: { error() {}, warn() {}, info() {}, debug() {} },
  });
  await triton.ready();
  const ask = async (name: string) => (await triton.infer(name, { IN: [[1]] })).OUT!.data[0];
  expect([await ask("e1"), await ask("e2")]).toEqual([2, 2]);

  const list = [one.path, two.path].map((path) => `'${path}'`);
  const text = "rollout of model 'm', option 'namespace': expected a repository that has the model";
  await expect(triton.rollout("m", { from: 2, to: 1 })).rejects.toThrow(text);
  await expect(triton.rollout("m", { from: 2, to: 1, namespace: "/elsewhere" })).rejects.toThrow(
    "got '/elsewhere'",
  );
  for (const path of list) await expect(triton.rollout("m", { to: 1 })).rejects.toThrow(path);

  const rollout = await triton.rollout("m", { from: 2, to: 1, share: 100, namespace: one.path });
  expect([await ask("e1"), await ask("e2")]).toEqual([1, 2]);
  rollout.promote();
  expect([await ask("e1"), await ask("e2")]).toEqual([1, 2]);
  rollout.remove();
  const other = await triton.rollout("m", { from: 2, to: 1, share: 100, namespace: two.path });
  expect([await ask("e1"), await ask("e2")]).toEqual([2, 1]);
  other.rollBack();
  expect([await ask("e1"), await ask("e2")]).toEqual([2, 2]);
});
