import { afterEach, describe, expect, it } from "vitest";
import { cudaNames } from "../../src/gpu/server-gpus.js";

describe("the device of a callback", () => {
  const visible = process.env.CUDA_VISIBLE_DEVICES;

  afterEach(() => {
    if (visible === undefined) delete process.env.CUDA_VISIBLE_DEVICES;
    else process.env.CUDA_VISIBLE_DEVICES = visible;
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
      expect(cudaNames(1).environment).toEqual({ CUDA_VISIBLE_DEVICES: selected });
    },
  );
});
