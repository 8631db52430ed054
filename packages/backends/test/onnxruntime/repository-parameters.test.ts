import { readFile } from "node:fs/promises";
import { Triton } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { irisModel } from "../../../../test/support/iris.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const iris = await readFile(irisModel);
const parameter = (key: string, value: string) =>
  `parameters { key: "${key}" value { string_value: "${value}" } }`;
const accelerator = (kind: string, name: string) =>
  `optimization { execution_accelerators { ${kind}_execution_accelerator [ { name: "${name}" } ] } }`;

/** Reason why an ONNX model with this configuration is not loaded; empty when it is. */
async function reasonFor(config: string, options: object = {}): Promise<string> {
  await using models = await RepositoryOnDisk.create({
    "m/config.pbtxt": `backend: "onnxruntime" ${config}`,
    "m/1/model.onnx": iris,
  });
  const logger = { error() {}, warn() {}, info() {}, debug() {} };
  await using triton = new Triton({ modelRepository: models.path, exitOnError: false, logger, ...options });
  await triton.ready();
  return (await triton.service.repositoryIndex(false))[0]!.reason ?? "";
}

describe("the configuration of an ONNX model", () => {
  it.each([
    parameter("intra_op_thread_count", "2"),
    parameter("intra_op_thread_count", "-1"),
    parameter("execution_mode", "+1"),
    parameter("enable_mem_arena", "OFF"),
    accelerator("gpu", "zzz"),
  ])("may have %s", async (config) => {
    expect(await reasonFor(config)).toBe("");
  });

  it.each([
    [parameter("inter_op_thread_count", "x"), "failed to convert 'x' to integral number"],
    [parameter("execution_mode", ""), "failed to convert '' to integral number"],
    [parameter("enable_mem_pattern", "yes"), "failed to convert 'yes' to boolean"],
    [accelerator("cpu", "zzz"), "unknown Execution Accelerator 'zzz' is requested"],
    [
      "max_batch_size: 8 batch_input { kind: BATCH_ELEMENT_COUNT target_name: 'n' source_input: 'measurements' }",
      "unexpected batch input data type 'TYPE_INVALID'",
    ],
  ])("may not have %s", async (config, text) => {
    expect(await reasonFor(config)).toMatch(new RegExp(`^Invalid argument: ${text}`));
  });

  it("is not completed from the file with disableAutoCompleteConfig, and must match it", async () => {
    const off = { disableAutoCompleteConfig: true };
    expect(await reasonFor("", off)).toContain(
      "unable to load model 'm', configuration expects 0 inputs, model provides 1",
    );
    expect(await reasonFor('input { name: "measurements" }', off)).toContain(
      "model input 'measurements' must specify 'data_type' for m",
    );
    const input = 'max_batch_size: 2 input { name: "measurements" data_type: TYPE_FP32 dims: 4 }';
    expect(await reasonFor(input, off)).toBe("");
  });
});
