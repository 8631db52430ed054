import { join } from "node:path";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";
import { fetchHandler } from "@tritonjs/http/fetch";

/** Opens the models of the application. */
function open() {
  const triton = new Triton();
  // Its tensors are those of the file, and its types those of models.d.ts, which `npm run types` writes.
  const iris = triton.bind({
    modelName: "iris",
    inferFunc: onnxruntime({ model: join(process.cwd(), "models", "iris.onnx") }),
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
