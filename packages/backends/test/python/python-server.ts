import { Tensor, Triton, TritonError } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { patientPython } from "../../../../test/support/python.js";
import { type RepositoryFiles, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

/** A Python model of a test: its code and its configuration. */
export interface PythonModel {
  readonly code: string;
  /** @default inputs X and outputs Y of type FP32, with any dims and without batching */
  readonly config?: string;
}

export const FLOATS = `input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]`;

export const DECOUPLED = `${FLOATS}
model_transaction_policy { decoupled: true }`;

const HEAD = `import json, os, signal, sys, threading, time
import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL

def x_of(request):
    return pb_utils.get_input_tensor_by_name(request, "X").as_numpy()

def y(values):
    return pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.atleast_1d(np.asarray(values, np.float32)))])

`;

import { sendRequest } from "../../../../test/support/send-request.js";
import { type ServedOptions, servedOptions } from "../../../../test/support/served-options.js";

/** The class of a model, built from the bodies of its methods. */
export function modelClass(methods: string): string {
  return `${HEAD}class TritonPythonModel:\n${methods.replace(/^/gm, "    ")}\n`;
}

/** The files of a repository with Python models. */
export function pythonFiles(models: Readonly<Record<string, PythonModel>>): RepositoryFiles {
  const files: Record<string, string> = {};
  for (const [name, { code, config = FLOATS }] of Object.entries(models)) {
    files[`${name}/config.pbtxt`] = `backend: "python"\n${config}\n`;
    files[`${name}/1/model.py`] = code;
  }
  return files;
}

/** A server with Python models, and its log lines. */
export class PythonServer implements AsyncDisposable {
  readonly lines: string[] = [];
  /** The fields of each line. */
  readonly subjects: (object | undefined)[] = [];
  readonly triton: Triton;
  readonly #listeners = new Set<() => void>();

  private constructor(
    private readonly repository: RepositoryOnDisk,
    options: ServedOptions,
  ) {
    const write = (message: string, about?: object) => {
      this.lines.push(message);
      this.subjects.push(about);
      for (const listener of this.#listeners) listener();
    };
    const logger = { takesSubjects: true, error: write, warn: write, info: write, debug: write };
    this.triton = new Triton(
      servedOptions({
        modelRepository: repository.path,
        exitOnError: false,
        backendConfig: patientPython,
        logger,
        ...options,
      }),
    );
  }

  /** Resolves when each model has loaded or failed to load. */
  static async start(
    models: Readonly<Record<string, PythonModel>>,
    options: ServedOptions = {},
  ): Promise<PythonServer> {
    const server = new PythonServer(await RepositoryOnDisk.create(pythonFiles(models)), options);
    await server.triton.ready();
    return server;
  }

  /** The reason why a model is not in service. */
  async reasonOf(name: string): Promise<string> {
    const rows = await serviceOf(this.triton).repositoryIndex(false);
    return rows.find((row) => row.name === name)?.reason ?? "";
  }

  /** Resolves with the first log line that has the text, or with a later one. */
  untilLogged(text: string, times = 1): Promise<string> {
    return new Promise((resolve) => {
      const look = () => {
        const line = this.lines.filter((one) => one.includes(text))[times - 1];
        if (line === undefined) return;
        this.#listeners.delete(look);
        resolve(line);
      };
      this.#listeners.add(look);
      look();
    });
  }

  /** The answer of a model to one or more numbers. */
  async ask(name: string, ...x: number[]): Promise<number[]> {
    const { Y } = await this.triton.infer<string>(name, { X: x });
    return [...((Y as { data: Float32Array }).data ?? [])];
  }

  /** The responses of a decoupled model, for a slow reader; leaving the loop cancels the request. */
  async *stream(name: string, x: readonly number[], signal?: AbortSignal): AsyncGenerator<number[]> {
    const waiting: (number[] | TritonError | undefined)[] = [];
    let wake = () => {};
    const inputs = new Map([["X", Tensor.fromElements("FP32", [x.length], Float32Array.from(x))]]);
    const request = sendRequest(
      serviceOf(this.triton).model(name, ""),
      { inputs },
      (outcome, final, running) => {
        if (TritonError.is(outcome)) waiting.push(outcome);
        else if (outcome !== undefined) {
          waiting.push([...(outcome.outputs.get("Y")!.elements as Float32Array)]);
          running.pause();
        }
        if (final) waiting.push(undefined);
        wake();
      },
    );
    signal?.addEventListener("abort", () => request.cancel());
    try {
      for (;;) {
        while (waiting.length > 0) {
          const next = waiting.shift();
          if (next === undefined) return;
          if (TritonError.is(next)) throw next;
          yield next;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
          request.resume();
        });
      }
    } finally {
      request.cancel();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.triton.close();
    await this.repository[Symbol.asyncDispose]();
  }
}
