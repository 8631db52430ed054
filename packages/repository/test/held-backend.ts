import { readdirSync } from "node:fs";
import { TritonError } from "@tritonjs/core";
import type { BackendFactory, Execution, ExecutionResult, Executor } from "@tritonjs/core/backend";

/** A backend whose models return their input when a test allows it. */
export class HeldBackend {
  /** Instances created so far. */
  created = 0;
  /** Files in the directory of each created version. */
  readonly files: string[][] = [];
  /** Numbers of the created versions, in order. */
  readonly versions: number[] = [];
  #stopped = 0;
  #open: (() => void)[] = [];
  #loading: { readonly begun: Gate; readonly go: Gate } | undefined;
  #next = gate();
  #onStop = gate();

  readonly factory: BackendFactory = ({ config, version, versionDirectory }) => {
    if (config.parameters.mark?.stringValue === "broken")
      throw new TritonError("INVALID_ARG", "the mark is broken");
    this.files.push(readdirSync(versionDirectory));
    this.versions.push(version);
    return {
      backendName: "held",
      platform: "",
      describe: () => undefined,
      createExecutor: () => this.#executor(),
    };
  };

  /** Resolves when a model has taken a request. */
  async next(): Promise<void> {
    if (this.#open.length === 0) await this.#next.open;
    this.#next = gate();
  }

  answerAll(): void {
    for (const answer of this.#open.splice(0)) answer();
  }

  /** Instances created from now on load only when the test allows it. */
  holdLoading(): void {
    this.#loading = { begun: gate(), go: gate() };
  }

  async loading(): Promise<void> {
    await this.#loading?.begun.open;
  }

  letLoad(): void {
    this.#loading?.go.pass();
    this.#loading = undefined;
  }

  /** Resolves when this many instances have stopped. */
  async stopped(count: number): Promise<void> {
    while (this.#stopped < count) await this.#onStop.open;
  }

  #executor(): Executor {
    this.created++;
    return {
      details: {},
      mustFinish: false,
      start: async () => {
        const loading = this.#loading;
        loading?.begun.pass();
        await loading?.go.open;
      },
      execute: (execution) => this.#execute(execution),
      stop: async () => {
        this.#stopped++;
        this.#onStop.pass();
        this.#onStop = gate();
      },
    } as Executor;
  }

  async #execute(execution: Execution): Promise<readonly ExecutionResult[]> {
    await new Promise<void>((resolve) => {
      this.#open.push(resolve);
      this.#next.pass();
    });
    return execution.requests.map(({ inputs }) => new Map([["OUTPUT0", inputs.get("INPUT0")!]]));
  }
}

interface Gate {
  readonly open: Promise<void>;
  pass(): void;
}

function gate(): Gate {
  let pass: () => void = () => {};
  const open = new Promise<void>((resolve) => {
    pass = resolve;
  });
  return { open, pass: () => pass() };
}
