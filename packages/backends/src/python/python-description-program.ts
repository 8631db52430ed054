import { basename } from "node:path";
import type { ModelDescription } from "@tritonjs/core/backend";
import { AutoCompleteConfig, emptyConfig, Log, realClock } from "@tritonjs/core/internal/worker";
import { fromConfigDataType, type ModelInput, type ModelOutput, type TensorSpec } from "@tritonjs/protocol";
import { completeWithPython, configParameters, type PythonDescription } from "./complete-with-python.js";

const nothing = () => {};
const log = new Log({ error: nothing, warn: nothing, info: nothing, debug: nothing });

/** Describes a Python model for a synchronous `bind`, in a worker. */
export async function describe(data: unknown): Promise<ModelDescription> {
  const { settings, parameters } = data as PythonDescription;
  const name = basename(settings.path, ".py");
  const config = new AutoCompleteConfig({
    ...emptyConfig(),
    name,
    parameters: configParameters(parameters),
  });
  let saysBatchSize = false;
  const setMaxBatchSize = config.setMaxBatchSize.bind(config);
  config.setMaxBatchSize = (size) => {
    saysBatchSize = true;
    setMaxBatchSize(size);
  };
  await completeWithPython(config, settings, { clock: realClock, log });
  const { input, output, maxBatchSize, modelTransactionPolicy } = config.config;
  return {
    inputs: input.map((one) => ({ ...specOf(one), ...(one.optional ? { optional: true } : {}) })),
    outputs: output.map(specOf),
    ...(saysBatchSize ? { maxBatchSize } : {}),
    ...(modelTransactionPolicy === undefined ? {} : { decoupled: modelTransactionPolicy.decoupled }),
    asInConfig: true,
  };
}

function specOf({ name, dataType, dims }: ModelInput | ModelOutput): TensorSpec {
  return { name, dtype: fromConfigDataType(dataType)!, shape: dims };
}
