import { workerData } from "node:worker_threads";
import { guardNativeCalls, packError, unreadableFile } from "@tritonjs/core/internal/worker";
import type { DescriptionTask, ProgramAnswer } from "./describe-in-worker.js";

/* Program of a worker that describes a model while the thread that started it blocks, or that reads a file. */

const { entry, call, what, data, port, done, nativeCalls } = workerData as DescriptionTask;
guardNativeCalls(nativeCalls);
port.postMessage(await answer());
Atomics.store(done, 0, 1);
Atomics.notify(done, 0);

async function answer(): Promise<ProgramAnswer> {
  try {
    const module: Record<string, (data: unknown) => unknown> = await import(
      /* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ entry
    );
    return { value: await module[call]!(data) };
  } catch (error) {
    if (call === "describe") return { error: packError(error) };
    const { cause: _, ...packed } = packError(unreadableFile(what, error));
    return { error: packed };
  }
}
