import { pathToFileURL } from "node:url";
import {
  type AutoCompleteConfig,
  type Backend,
  type BackendFactory,
  type Executor,
  type ExecutorContext,
  findModelFile,
  hostingOf,
  type ModelFiles,
  workerExecutor,
} from "@tritonjs/core/backend";
import {
  askWorker,
  loadTimeoutMs,
  moduleProgram,
  SHARED_PARAMETERS,
  StepwiseExecutor,
} from "@tritonjs/core/internal";
import { completeBy } from "@tritonjs/core/internal/worker";
import {
  errorFor,
  type InstanceHosting,
  type Isolation,
  isDecoupled,
  type ModelConfig,
} from "@tritonjs/protocol";
import type { CompletionStep, ModuleProbe, ProbeData } from "./javascript-probe.js";

const ISOLATIONS: readonly Isolation[] = ["worker", "process"];

/** A model may download files in `initialize`. The limit still detects a model that hangs. */
const LOAD_TIMEOUT_SECONDS = 120;

/**
 * The backend `javascript` for models of a repository: `<version>/model.js`, `model.mjs`, or `model.ts` where Node
 * strips types. As for `bind`, the module exports a {@link JsModel} class or a callback. Each instance is a worker
 * thread, or a process with the parameter `isolation`.
 */
export const javascriptBackend: BackendFactory = SHARED_PARAMETERS.declaredBy(async (source) => {
  const { path } = await findModelFile(source, ["model.js", "model.mjs", "model.ts"]);
  return moduleBackend(source, { path, directory: source.directory, backendName: "javascript" });
});

/** A module, and what its models are told about themselves. */
interface BackendModule {
  readonly path: string;
  /** `modelDirectory` of the models. */
  readonly directory: string;
  readonly backendName: string;
}

/** The backend that runs a model with a module: that of the model, or the one that models of a backend share. */
export async function moduleBackend(
  source: ModelFiles,
  { path, directory, backendName }: BackendModule,
): Promise<Backend> {
  const module = pathToFileURL(path).href;
  const hosting = hostingOf(source, ISOLATIONS, false);
  const timeoutMs = loadTimeoutMs(source, LOAD_TIMEOUT_SECONDS);
  const probe = await probeModule(module, source, hosting, timeoutMs);
  const program = moduleProgram({ module, directory, stepwise: probe.stepwise });
  return {
    backendName,
    platform: "",
    isolations: ISOLATIONS,
    hosting,
    describe: () => undefined,
    completeConfig: (config) => {
      if (probe.generates && config.config.modelTransactionPolicy === undefined) {
        config.setModelTransactionPolicy({ decoupled: true });
      }
      replay(probe.steps, config);
    },
    createExecutor: (context: ExecutorContext): Executor => {
      const { info } = context;
      const executor = workerExecutor({ ...program, loadTimeoutMs: timeoutMs }, context);
      if (!probe.stepwise) return executor;
      assertFitsSteps(info.modelConfig);
      return new StepwiseExecutor(executor, () => info.modelConfig.maxBatchSize);
    },
  };
}

function replay(steps: readonly CompletionStep[], config: AutoCompleteConfig): void {
  for (const [method, argument] of steps) completeBy(config, method, argument);
}

/** Requires `max_batch_size` and no batching scheduler, because a loop of steps forms its own batches. */
function assertFitsSteps(config: ModelConfig): void {
  const { name, maxBatchSize, dynamicBatching, sequenceBatching } = config;
  if (
    maxBatchSize > 0 &&
    isDecoupled(config) &&
    dynamicBatching === undefined &&
    sequenceBatching === undefined
  ) {
    return;
  }
  throw errorFor(
    "INVALID_CONFIG",
    `model '${name}' has a stepwise callback, which needs max_batch_size (the requests that run together) and ` +
      "model_transaction_policy { decoupled: true }, and no dynamic_batching or sequence_batching",
  );
}

/**
 * Asks a module about its model, in a worker of its own. The module's import and its `autoCompleteConfig` can then
 * neither block this thread nor end this process.
 *
 * @throws TritonError that describes the fault of the module, or says that it takes too long
 */
function probeModule(
  module: string,
  { name, version, config, autoComplete, warn }: ModelFiles,
  hosting: InstanceHosting,
  loadTimeoutMs: number,
): Promise<ModuleProbe> {
  const data: ProbeData = { module, autoComplete };
  const entry = new URL("./javascript-probe.js", import.meta.url);
  const program = { entry, data, interruptible: true, loadTimeoutMs };
  return askWorker<ModuleProbe>(program, { name, version, config, hosting, warn }, "probe");
}
