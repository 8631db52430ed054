import type { InstanceHosting } from "@tritonjs/protocol";
import type { InstanceDevice } from "../../callable/infer-context.js";
import type { WorkerProgram } from "../../instance/worker/worker-program.js";
import type { SessionData } from "./create-session.js";
import type { OnnxRuntimeOptions } from "./options.js";
import { needsProcess, providersFor } from "./providers.js";
import type { OnnxDescription } from "./read-onnx.js";
import { sessionOptions } from "./session-options.js";

/** The program of a model's workers, and where it has to run. */
export interface SessionProgram {
  readonly program: WorkerProgram & { readonly data: SessionData };
  readonly hosting: InstanceHosting;
}

/** The program of the workers that run a model on a device. */
export function sessionProgram(
  model: string | Uint8Array,
  { inputs }: OnnxDescription,
  device: InstanceDevice,
  instanceCount: number,
  {
    model: _,
    engine: __,
    executionProviders,
    strictProviders = false,
    onWarning: ___,
    ...settings
  }: OnnxRuntimeOptions,
): SessionProgram {
  const providers = providersFor(device, executionProviders);
  const data: SessionData = {
    model,
    providers,
    strict: strictProviders,
    sessionOptions: sessionOptions(settings, instanceCount),
    scalars: inputs.filter(({ dims }) => dims?.length === 0).map(({ name }) => name),
    ranksUnknown: inputs.filter(({ dims }) => dims === undefined).map(({ name }) => name),
  };
  const program = {
    entry: new URL("./session-model.js", import.meta.url),
    data,
    interruptible: false,
    tensorsOnly: true,
    returnsInputs: true,
    reusesThread: true,
  };
  return { program, hosting: needsProcess(providers) ? { isolation: "process" } : {} };
}
