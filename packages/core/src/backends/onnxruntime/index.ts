import { fileURLToPath } from "node:url";
import type { InstanceDevice } from "../../callable/infer-context.js";
import { planInstances } from "../../config/placement/instances.js";
import type { Backend, ModelDescription } from "../../instance/backend.js";
import { prepareWorkers } from "../../instance/worker/open-worker.js";
import { OpenedWorker } from "../../instance/worker/opened-worker.js";
import { WorkerExecutor } from "../../instance/worker/worker-executor.js";
import { describeInWorker } from "../describe-in-worker.js";
import { describeOnnxModel, lacksShapes, readOnnxFile } from "./describe-model.js";
import type { OnnxRuntimeOptions } from "./options.js";
import type { OnnxDescription } from "./read-onnx.js";
import { sessionProgram } from "./session-program.js";
import type { SessionTensors } from "./session-tensors.js";

export { OnnxSession, type OnnxSessionOptions, openSession } from "./open-session.js";
export type { ExecutionProvider, OnnxRuntimeOptions } from "./options.js";

/**
 * A backend that runs an ONNX model with ONNX Runtime, each instance in a worker thread with a session of its own.
 * Inputs, outputs and whether the model can batch (all first dimensions variable) come from the file when `bind` does
 * not get them. Where the file leaves out the shape of an output, `bind` waits for a worker in which ONNX Runtime
 * infers it.
 *
 * @throws TritonError at `bind` for a missing file (NOT_FOUND), a file that is not an ONNX model (INVALID_ARG), types
 * that cannot pass through Node (UNSUPPORTED), and shapes that cannot be inferred because the model does not load
 * (INVALID_ARG).
 * @example
 * ```ts
 * triton.bind({ modelName: "iris", inferFunc: onnxruntime({ model: "iris.onnx" }) });
 * ```
 */
export function onnxruntime(options: OnnxRuntimeOptions): Backend {
  const { model: given, onWarning } = options;
  const model = given instanceof URL ? fileURLToPath(given) : given;
  const warn = onWarning ?? ((message: string) => process.emitWarning(message, "TritonWarning"));
  let file: OnnxDescription | undefined;
  let description: ModelDescription | undefined;
  let opened: OpenedWorker | undefined;
  const readFile = () => {
    file ??= readOnnxFile(model);
    return file;
  };
  const programOn = (device: InstanceDevice, instanceCount: number) =>
    sessionProgram(model, readFile(), device, instanceCount, options);
  return {
    backendName: "onnxruntime",
    platform: "onnxruntime_onnx",
    isolations: ["worker", "process"],
    describe: () => {
      description ??= lacksShapes(readFile())
        ? describeInWorker(
            new URL("./description-program.js", import.meta.url),
            programOn(ON_CPU, 1).program.data,
            DESCRIBE_WITHIN_MS,
            "the ONNX model",
          )
        : describeOnnxModel(model, undefined, readFile());
      return description;
    },
    async open(config) {
      // Reports faults of the file without opening a session.
      if (!lacksShapes(readFile())) describeOnnxModel(model, undefined, readFile());
      const planned = planInstances(config);
      const [first] = planned;
      if (first === undefined) return describeOnnxModel(model, undefined, readFile());
      const { program, hosting } = programOn({ kind: first.kind, id: first.deviceId }, planned.length);
      const place = { hosting: { ...hosting, ...first.group.hosting } };
      opened = new OpenedWorker(config.name, program, place, (message) =>
        warn(`model '${config.name}': ${message}`),
      );
      prepareWorkers(program, place, planned.length - 1);
      const session = (await opened.description) as SessionTensors | undefined;
      return describeOnnxModel(model, session, readFile());
    },
    async close() {
      await opened?.close();
    },
    createExecutor: (context) => {
      const { program, hosting } = programOn(context.info.device, context.instanceCount);
      return new WorkerExecutor(program, {
        ...context,
        hosting: { ...hosting, ...context.hosting },
        warn,
        opened: context.placement.index === 0 ? opened : undefined,
      });
    },
  };
}

const ON_CPU: InstanceDevice = { kind: "KIND_CPU", id: 0 };

/** A worker that does not answer within this time is ended. */
const DESCRIBE_WITHIN_MS = 120_000;
