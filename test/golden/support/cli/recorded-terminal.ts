import type { Terminal } from "@tritonjs/cli";

/** The terminal of a command that runs inside a test. */
export class RecordedTerminal implements Terminal {
  readonly environment = {};
  output = "";
  errors = "";
  readonly #watchers = new Set<() => void>();
  #stop: (signal: string) => void = () => {};
  readonly #stopRequested = new Promise<string>((resolve) => {
    this.#stop = resolve;
  });

  write(text: string): void {
    this.output += text;
  }

  writeError(text: string): void {
    this.errors += text;
    for (const look of this.#watchers) look();
  }

  stopRequested(): Promise<string> {
    return this.#stopRequested;
  }

  /** Stands for `SIGTERM`. */
  stop(): void {
    this.#stop("15");
  }

  get lines(): string[] {
    return this.errors.split("\n");
  }

  /** Resolves with all of standard error when it has the text. */
  untilOutput(text: string): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!this.errors.includes(text)) return;
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
  }
}
