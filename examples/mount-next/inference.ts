import { join } from "node:path";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";
import { fetchHandler } from "@tritonjs/http/fetch";

/** Opens the models of the application. */
function open() {
  const triton = new Triton();
  const iris = triton.bind({
    modelName: "iris",
    inferFunc: onnxruntime({ model: join(process.cwd(), "models", "iris.onnx") }),
    inputs: [{ name: "measurements", dtype: "FP32", shape: [4] }],
    outputs: [{ name: "species", dtype: "INT64", shape: [1] }],
    config: { maxBatchSize: 64 },
  });
  return { triton, iris, v2: fetchHandler(triton) };
}

const shared = globalThis as { inference?: ReturnType<typeof open> };

/**
 * The models, which are opened on the first call. They are kept in `globalThis`: each route is a bundle with a copy of
 * this module, and a hot reload evaluates the module again.
 */
export function inference(): ReturnType<typeof open> {
  shared.inference ??= open();
  return shared.inference;
}
