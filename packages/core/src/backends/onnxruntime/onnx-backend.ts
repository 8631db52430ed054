import { fileURLToPath } from "node:url";
import { type InstanceHosting, TritonError } from "@tritonjs/protocol";
import type { InstanceDevice } from "../../callable/infer-context.js";
import { planInstances } from "../../config/placement/instances.js";
import type { Backend, ModelDescription } from "../../instance/backend.js";
import { prepareWorkers } from "../../instance/worker/open-worker.js";
import { OpenedWorker } from "../../instance/worker/opened-worker.js";
import { WorkerExecutor } from "../../instance/worker/worker-executor.js";
import { describeInWorker } from "../describe-in-worker.js";
import { chooseEngine } from "./choose-engine.js";
import { describeOnnxModel, lacksShapes, readOnnxFile } from "./describe-model.js";
import { disableTelemetry } from "./disable-telemetry.js";
import { NativeModel } from "./native/native-model.js";
import { describeSession } from "./native/native-session.js";
import { ONNX_ENGINES, type OnnxRuntimeOptions } from "./options.js";
import type { OnnxDescription } from "./read-onnx.js";
import { sessionProgram } from "./session-program.js";
import type { SessionTensors } from "./session-tensors.js";

/**
 * Makes the backend of an ONNX model.
 *
 * @param ofModel hosting that the parameters of a model in a repository give its instances
 * @throws TritonError INVALID_ARG for an unknown engine
 */
export function onnxBackend(options: OnnxRuntimeOptions, ofModel: InstanceHosting = {}): Backend {
  const { model: given, onWarning, engine = "worker" } = options;
  assertEngine(engine);
  // Before workers start, because they get copies of the environment.
  disableTelemetry();
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
  const native = new NativeModel(() => programOn(ON_CPU, 1).program.data);
  const engineOf = (device: InstanceDevice, hosting: InstanceHosting | undefined, instanceCount: number) => {
    const { data } = programOn(device, instanceCount).program;
    return chooseEngine(engine, { ...data, hosting: { ...ofModel, ...hosting }, instanceCount });
  };
  const fromFile = (isNative: boolean) => describeOnnxModel(model, undefined, readFile(), isNative);
  return {
    backendName: "onnxruntime",
    platform: "onnxruntime_onnx",
    isolations: ["worker", "process"],
    endsBatches: engine !== "worker",
    describe: () => {
      description ??= lacksShapes(readFile())
        ? describeInWorker(
            new URL("./description-program.js", import.meta.url),
            programOn(ON_CPU, 1).program.data,
            DESCRIBE_WITHIN_MS,
            "the ONNX model",
          )
        : fromFile("api" in engineOf(ON_CPU, undefined, 1));
      return description;
    },
    async open(config) {
      const planned = planInstances(config);
      const [first] = planned;
      if (first === undefined) return fromFile(false);
      const device = { kind: first.kind, id: first.deviceId };
      const chosen = engineOf(device, first.group.hosting, planned.length);
      // Reports faults of the file without opening a session.
      if (!lacksShapes(readFile())) fromFile("api" in chosen);
      if ("api" in chosen) {
        const session = await native.open(chosen.api);
        return describeOnnxModel(model, describeSession(session), readFile(), true);
      }
      const { program, hosting } = programOn(device, planned.length);
      const place = { hosting: { ...hosting, ...ofModel, ...first.group.hosting } };
      opened = new OpenedWorker(config.name, program, place, (message) =>
        warn(`model '${config.name}': ${message}`),
      );
      prepareWorkers(program, place, planned.length - 1);
      const session = (await opened.description) as SessionTensors | undefined;
      return describeOnnxModel(model, session, readFile());
    },
    async close() {
      await opened?.close();
      await native.dropOpened();
    },
    createExecutor: (context) => {
      const { info, instanceCount, placement } = context;
      const { program, hosting } = programOn(info.device, instanceCount);
      const chosen = engineOf(info.device, context.hosting, instanceCount);
      if ("api" in chosen) {
        return native.executor(chosen.api, { ...context, hosting: { ...ofModel, ...context.hosting } });
      }
      if (chosen.reason !== undefined && placement.index === 0) {
        context.log.info(`model '${info.modelName}': ONNX Runtime runs in workers: ${chosen.reason}`);
        const { executionTimeoutMs, isolation } = { ...ofModel, ...context.hosting };
        if (executionTimeoutMs !== undefined && isolation !== "process") {
          context.log.warning(
            `model '${info.modelName}': executionTimeoutMs has no effect on a worker thread: set isolation 'process'`,
          );
        }
      }
      return new WorkerExecutor(program, {
        ...context,
        hosting: { ...hosting, ...ofModel, ...context.hosting },
        warn,
        opened: placement.index === 0 ? opened : undefined,
      });
    },
  };
}

function assertEngine(engine: unknown): void {
  if ((ONNX_ENGINES as readonly unknown[]).includes(engine)) return;
  throw new TritonError(
    "INVALID_ARG",
    `engine of the ONNX model: expected one of ${ONNX_ENGINES.join(", ")}, got '${String(engine)}'`,
    { reason: "INVALID_CONFIG" },
  );
}

const ON_CPU: InstanceDevice = { kind: "KIND_CPU", id: 0 };

/** A worker that does not answer within this time is ended. */
const DESCRIBE_WITHIN_MS = 120_000;
