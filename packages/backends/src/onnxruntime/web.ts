import type { Backend, Execution, ExecutionResult, Executor } from "@tritonjs/core/backend";
import { divideOutputs, joinInputs } from "@tritonjs/core/web";
import { assertOptions, errorFor, optionTypes, type Tensor, TritonError } from "@tritonjs/protocol";
import type { InferenceSession } from "onnxruntime-node";
import type { SessionTensor } from "./describe-onnx-model.js";
import { fromResults, scalarInputs, scalarOutputs, sessionTensors, toFeeds } from "./ort-tensors.js";
import { isOutOfMemory, MOST_BYTES, refuseWithoutSimd, tooLarge } from "./wasm-host.js";

/*
 * `@tritonjs/backends/onnxruntime/web`: ONNX models on the thread of the caller, by the ONNX Runtime that the program
 * imports. It imports nothing of Node, so it runs in pages, in web workers and in single files.
 */

/** The part of `onnxruntime-web` that is used. `import * as ort from "onnxruntime-web/wasm"` has it. */
interface OrtModule {
  readonly InferenceSession: { create(model: Uint8Array, options?: object): Promise<object> };
}

/** Options of {@link onnxruntimeWeb}. */
export interface OnnxRuntimeWebOptions {
  /** The module `onnxruntime-web`, or one of its builds: `onnxruntime-web/wasm`, `onnxruntime-web/webgpu`. */
  readonly ort: OrtModule;
  /** Bytes of the `.onnx` file. */
  readonly model: Uint8Array | ArrayBuffer;
  /** Providers in order of preference, as ONNX Runtime takes them: `webgpu`, `wasm`. @default ["wasm"] */
  readonly executionProviders?: readonly (string | { readonly name: string })[];
  /** Further options of the session, as ONNX Runtime takes them. */
  readonly sessionOptions?: Readonly<Record<string, unknown>>;
}

const OPTION_TYPES = optionTypes<OnnxRuntimeWebOptions>({
  ort: "object",
  model: "object",
  executionProviders: "array",
  sessionOptions: "object",
});

/**
 * Opens an ONNX model for `bind`, on the thread of the caller. All instances share its session. It ends with the model.
 *
 * @throws TritonError INVALID_ARG with ONNX Runtime's words for a model that does not load, UNSUPPORTED without SIMD, for
 * a model that needs more than 4 GB, and for types that the protocol cannot carry
 * @example
 * ```ts
 * import * as ort from "onnxruntime-web/wasm";
 *
 * const model = await (await fetch("iris.onnx")).arrayBuffer();
 * triton.bind({ modelName: "iris", inferFunc: await onnxruntimeWeb({ ort, model }) });
 * ```
 */
export async function onnxruntimeWeb(options: OnnxRuntimeWebOptions): Promise<Backend> {
  assertOptions("onnxruntimeWeb()", options, OPTION_TYPES, {}, ["ort", "model"]);
  const { ort, model, executionProviders = ["wasm"], sessionOptions } = options;
  refuseWithoutSimd();
  const bytes = model instanceof Uint8Array ? model : new Uint8Array(model);
  const label = `of ${bytes.length} bytes`;
  if (bytes.length >= MOST_BYTES) throw tooLarge(label, `${bytes.length} bytes`);
  let session: InferenceSession;
  try {
    const made = await ort.InferenceSession.create(bytes, { ...sessionOptions, executionProviders });
    session = made as InferenceSession;
  } catch (cause) {
    const [why] = TritonError.from(cause).message.split("\n");
    if (isOutOfMemory(cause)) throw tooLarge(label, why!, cause);
    throw errorFor("INVALID_MODEL", `cannot load the ONNX model ${label}: ${why}`, { cause });
  }
  return backendOf(
    session,
    String((executionProviders[0] as { name?: string }).name ?? executionProviders[0]),
  );
}

function backendOf(session: InferenceSession, provider: string): Backend {
  const tensors = sessionTensors(session);
  if (tensors === undefined) {
    const text =
      "onnxruntimeWeb(): expected an onnxruntime-web of version 1.22 or newer, whose sessions describe tensors";
    throw errorFor("PACKAGE_NOT_INSTALLED", text);
  }
  const lane = new Lane();
  let users = 0;
  return {
    backendName: "onnxruntime",
    platform: "onnxruntime_onnx",
    describe: () => ({
      inputs: tensors.inputs.map((tensor) => described(tensor, "input")),
      outputs: tensors.outputs.map((tensor) => described(tensor, "output")),
    }),
    createExecutor({ info, checker }): Executor {
      const { modelConfig } = info;
      const scalars = tensors.inputs.filter(({ shape }) => shape.length === 0).map(({ name }) => name);
      const scalar = scalarInputs({ scalars, ranksUnknown: [] }, modelConfig);
      const shaped = scalarOutputs(modelConfig);
      const names = modelConfig.output.map(({ name }) => name);
      const run = async (inputs: ReadonlyMap<string, Tensor>) =>
        shaped(fromResults(await session.run(toFeeds(inputs, scalar), names)));
      return {
        mustFinish: true,
        isolation: "inline",
        details: { executionProvider: provider, engine: "web" },
        async start() {
          users++;
        },
        async execute(execution: Execution): Promise<readonly ExecutionResult[]> {
          const inputs = joinInputs(execution);
          execution.inputsReady();
          const outputs = await lane.run(() => run(inputs));
          execution.outputsReady();
          const rows = execution.requests.reduce((sum, request) => sum + request.rows, 0);
          return divideOutputs(execution, checker.check(outputs, rows, [], true));
        },
        async stop() {
          if (--users === 0) await lane.run(() => session.release());
        },
      };
    },
  };
}

function described({ name, dtype, shape }: SessionTensor, kind: string) {
  if (dtype !== undefined) return { name, dtype, shape };
  const text = `cannot serve the ONNX model: it has ${kind} '${name}' of a type that the protocol cannot carry`;
  throw errorFor("MODEL_NOT_SUPPORTED", text);
}

/** Runs tasks one after the other: a session of WebGPU runs one batch at a time. */
class Lane {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#last.then(task);
    this.#last = done.catch(() => {});
    return done;
  }
}
