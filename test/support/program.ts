import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** End of a program, and all of its output. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running program. */
export class Program {
  readonly ended: Promise<Ended>;
  #stdout = "";
  #stderr = "";
  readonly #child: ChildProcess;

  /** Starts a program without a shell, unless `shell` says otherwise. With `detached` it leads a group of its own. */
  constructor(
    command: string,
    args: readonly string[],
    options: { cwd: string; shell?: boolean; env?: NodeJS.ProcessEnv; detached?: boolean },
  ) {
    // Packages are looked up only around the program: pnpm's launchers name further places.
    const env = { ...process.env, NODE_PATH: undefined, ...options.env };
    this.#child = spawn(command, args, { ...options, env, stdio: ["ignore", "pipe", "pipe"] });
    this.#child.stdout?.setEncoding("utf8").on("data", (part: string) => {
      this.#stdout += part;
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (part: string) => {
      this.#stderr += part;
    });
    this.ended = once(this.#child, "close").then(([code, signal]) => ({
      code,
      signal,
      stdout: this.#stdout,
      stderr: this.#stderr,
    }));
  }

  /** Starts a module with this Node. */
  static node(module: string, args: readonly string[], cwd: string): Program {
    return new Program(process.execPath, [module, ...args], { cwd });
  }

  /**
   * Resolves with the output so far, standard output by default, when that contains `text`; rejects when the program
   * ends before.
   */
  async untilOutput(text: string, stream: "stdout" | "stderr" = "stdout"): Promise<string> {
    const written = () => (stream === "stdout" ? this.#stdout : this.#stderr);
    const said = new Promise<void>((resolve) => {
      const look = () => {
        if (written().includes(text)) resolve();
      };
      this.#child[stream]?.on("data", look);
      look();
    });
    const ended = this.ended.then(({ code, stderr }) => {
      throw new Error(`ended with ${code} before it said '${text}': ${stderr}`);
    });
    await Promise.race([said, ended]);
    ended.catch(() => {});
    return written();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Signals a `detached` program and the processes that it started in its group. Does nothing when all have ended. */
  signalGroup(name: NodeJS.Signals): void {
    try {
      process.kill(-this.#child.pid!, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  /** Reads no more of an output, so that writing to it fails. */
  closeOutput(stream: "stdout" | "stderr"): void {
    this.#child[stream]?.destroy();
  }
}
