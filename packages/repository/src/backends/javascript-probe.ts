import { AutoCompleteConfig, type CompletionMethod, type WorkerModel } from "@tritonjs/core/backend";
import {
  COMPLETION_METHODS,
  isGenerator,
  readModule,
  resolveLibrary,
  styleOf,
} from "@tritonjs/core/internal/worker";
import type { InstanceInfo } from "@tritonjs/core/types";
import { TritonError } from "@tritonjs/protocol";

export type CompletionStep = readonly [method: CompletionMethod, argument: unknown];

export interface ModuleProbe {
  /** Whether requests run together step by step. */
  readonly stepwise: boolean;
  /** Whether the model answers with any number of responses. */
  readonly generates: boolean;
  /** The calls that its `autoCompleteConfig` made. */
  readonly steps: readonly CompletionStep[];
}

export interface ProbeData {
  readonly module: string;
  readonly autoComplete: boolean;
}

/** Entry of a worker that imports a module and lets it complete the configuration. The result is in `details`. */
export async function load(data: unknown, { modelName, modelConfig }: InstanceInfo): Promise<WorkerModel> {
  const { module, autoComplete } = data as ProbeData;
  resolveLibrary(module);
  const { callback, autoCompleteConfig } = await readModule(module, modelName);
  const steps: CompletionStep[] = [];
  if (autoComplete && autoCompleteConfig !== undefined) {
    try {
      await autoCompleteConfig(recording(new AutoCompleteConfig(modelConfig), steps));
    } catch (error) {
      if (TritonError.is(error)) throw error;
      const { message } = TritonError.from(error);
      throw new TritonError("INTERNAL", `model '${modelName}': autoCompleteConfig failed: ${message}`);
    }
  }
  const stepwise = callback !== undefined && styleOf(callback) === "stepwise";
  const probe: ModuleProbe = { stepwise, generates: stepwise || isGenerator(callback), steps };
  return {
    ownsOutputs: false,
    details: { probe: JSON.stringify(probe) },
    execute: () =>
      Promise.reject(
        new TritonError("INTERNAL", "an instance opened to describe a model cannot execute requests"),
      ),
  };
}

/** A configuration that records the calls made on it. */
function recording(config: AutoCompleteConfig, steps: CompletionStep[]): AutoCompleteConfig {
  for (const method of COMPLETION_METHODS) {
    const run = config[method].bind(config) as (argument: unknown) => void;
    Object.defineProperty(config, method, {
      value: (argument: unknown) => {
        run(argument);
        steps.push([method, plain(argument)]);
      },
    });
  }
  return config;
}

/** Converts bigint dims, which JSON cannot hold. */
function plain(argument: unknown): unknown {
  const text = JSON.stringify(argument, (_, value) => (typeof value === "bigint" ? Number(value) : value));
  return text === undefined ? undefined : JSON.parse(text);
}
