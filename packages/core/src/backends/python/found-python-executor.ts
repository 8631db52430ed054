import { TritonError } from "@tritonjs/protocol";
import type { ExecutorContext } from "../../instance/backend.js";
import type { FoundPython } from "./find-python.js";
import { PythonExecutor } from "./python-executor.js";
import type { PythonSettings } from "./python-session.js";

/** Runs an instance with the Python that is found for it. An unpacked environment lives as long as the instance. */
export class FoundPythonExecutor extends PythonExecutor {
  #python: FoundPython | undefined;
  #stopped = false;

  /** @param find finds the Python, and unpacks its environment if necessary */
  constructor(
    settings: PythonSettings,
    directory: string,
    context: ExecutorContext,
    private readonly find: () => Promise<FoundPython>,
  ) {
    super(settings, directory, context);
  }

  override async start(): Promise<void> {
    if (this.#python === undefined) {
      const found = await this.find();
      if (this.#stopped) {
        await found.release();
        throw new TritonError("UNAVAILABLE", "the model was stopped while it was loading", {
          reason: "MODEL_STOPPED",
        });
      }
      this.#python = found;
      this.settings = { ...this.settings, python: found.program };
    }
    await super.start();
  }

  override async stop(): Promise<void> {
    this.#stopped = true;
    await super.stop();
    await this.#python?.release();
  }
}
