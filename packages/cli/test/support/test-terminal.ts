import type { Terminal } from "@tritonjs/cli";

/** Collects what a command writes. */
export class TestTerminal implements Terminal {
  output = "";
  errors = "";

  constructor(readonly environment: NodeJS.ProcessEnv = {}) {}

  write(text: string): void {
    this.output += text;
  }

  writeError(text: string): void {
    this.errors += text;
  }

  stopRequested(): Promise<string> {
    return new Promise(() => {});
  }
}
