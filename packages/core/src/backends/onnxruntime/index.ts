import { fileURLToPath } from "node:url";
import type { InstanceHosting } from "../../config/instance-hosting.js";
import type { Backend, ModelDescription } from "../../instance/backend.js";
import { WorkerExecutor } from "../../instance/worker/worker-executor.js";
import type { SessionData } from "./create-session.js";
import { describeOnnxModel } from "./describe-model.js";
import type { OnnxRuntimeOptions } from "./options.js";
import { needsProcess, providersFor } from "./providers.js";
import { sessionOptions } from "./session-options.js";

export { OnnxSession, type OnnxSessionOptions, openSession } from "./open-session.js";
export type { ExecutionProvider, OnnxRuntimeOptions } from "./options.js";

/**
 * A backend that runs an ONNX model with ONNX Runtime, each instance in a worker thread with a session of its
 * own. Inputs, outputs and whether the model can batch (all first dimensions variable) come from the file when
 * `bind` is not told.
 *
 * @throws TritonError at `bind` for a missing file (NOT_FOUND), one that is no ONNX model (INVALID_ARG) and
 * types that cannot pass through Node (UNSUPPORTED).
 * @example
 * ```ts
 * triton.bind({ modelName: "iris", inferFunc: onnxruntime({ model: "iris.onnx" }) });
 * ```
 */
export function onnxruntime(options: OnnxRuntimeOptions): Backend {
  const { model: given, executionProviders, strictProviders = false, onWarning, ...settings } = options;
  const model = given instanceof URL ? fileURLToPath(given) : given;
  let description: ModelDescription | undefined;
  const describe = () => {
    description ??= describeOnnxModel(model);
    return description;
  };
  return {
    backendName: "onnxruntime",
    platform: "onnxruntime_onnx",
    isolations: ["worker", "process"],
    describe,
    createExecutor: (context) => {
      const providers = providersFor(context.info.device, executionProviders);
      const isolation: InstanceHosting = needsProcess(providers) ? { isolation: "process" } : {};
      const data: SessionData = {
        model,
        providers,
        strict: strictProviders,
        sessionOptions: sessionOptions(settings, context.instanceCount),
        scalars: describe()
          .inputs.filter(({ shape }) => shape.length === 0)
          .map(({ name }) => name),
      };
      const program = {
        entry: new URL("./session-model.js", import.meta.url),
        data,
        interruptible: false,
        tensorsOnly: true,
      };
      const warn = onWarning ?? ((message: string) => process.emitWarning(message, "TritonWarning"));
      return new WorkerExecutor(program, { ...context, hosting: { ...isolation, ...context.hosting }, warn });
    },
  };
}
