import { Triton } from "@tritonjs/core";
import { afterEach, describe, expect, it } from "vitest";
import { instanceDevice } from "../../src/callback/instance-device.js";

const visible = process.env.CUDA_VISIBLE_DEVICES;
afterEach(() => {
  if (visible === undefined) delete process.env.CUDA_VISIBLE_DEVICES;
  else process.env.CUDA_VISIBLE_DEVICES = visible;
});

describe("the device of a callback", () => {
  it("has the words of each library for its GPU", () => {
    delete process.env.CUDA_VISIBLE_DEVICES;
    expect(instanceDevice("KIND_GPU", 1)).toEqual({
      kind: "KIND_GPU",
      id: 1,
      executionProviders: [{ name: "cuda", deviceId: 1 }, "cpu"],
      torch: "cuda:1",
      environment: { CUDA_VISIBLE_DEVICES: "1" },
    });
    for (const kind of ["KIND_CPU", "KIND_MODEL"] as const) {
      expect(instanceDevice(kind, 0)).toEqual({
        kind,
        id: 0,
        executionProviders: ["cpu"],
        torch: "cpu",
        environment: {},
      });
    }
  });

  it.each([
    ["3,1", "1"],
    [" GPU-aaaa , GPU-bbbb ", "GPU-bbbb"],
    ["7", "1"],
    ["", "1"],
  ])(
    "selects its GPU among those that CUDA_VISIBLE_DEVICES '%s' shows to this process",
    (shown, selected) => {
      process.env.CUDA_VISIBLE_DEVICES = shown;
      expect(instanceDevice("KIND_GPU", 1).environment).toEqual({ CUDA_VISIBLE_DEVICES: selected });
    },
  );

  it("reaches callbacks on this thread and modules in workers and processes", async () => {
    await using triton = new Triton({ gpus: [0, 1] });
    const inputs = [{ name: "x", dtype: "FP32", shape: [1] }] as const;
    const outputs = [{ name: "torch", dtype: "BYTES", shape: [1] }] as const;
    const inline = triton.bind({
      modelName: "inline",
      inputs,
      outputs,
      inferFunc: (requests, { device }) => requests.map(() => ({ torch: [device.torch] })),
      config: { batching: false, instanceGroup: { kind: "KIND_GPU", gpus: [1] } },
    });
    const text = ({ torch }: { readonly torch: { readonly data: ArrayLike<unknown> } }) =>
      Array.from(torch.data, (one) => Buffer.from(one as Uint8Array).toString());
    expect(text(await inline.inferSample({ x: [1] }))).toEqual(["cuda:1"]);
    for (const isolation of ["worker", "process"] as const) {
      const module = triton.bind({
        modelName: isolation,
        inputs,
        outputs,
        inferFunc: new URL("./fixtures/says-device.mjs", import.meta.url),
        config: { batching: false, instanceGroup: { kind: "KIND_GPU", gpus: [1], isolation } },
      });
      expect(text(await module.inferSample({ x: [1] }))).toEqual(["cuda:1 cuda 1"]);
    }
  });
});
