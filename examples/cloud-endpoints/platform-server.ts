import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const command = fileURLToPath(new URL("./main.js", import.meta.resolve("@tritonjs/cli")));

/** `tritonjs serve` with the environment variables that a platform gives to its container. */
export class PlatformServer implements AsyncDisposable {
  private constructor(
    readonly url: string,
    private readonly child: ChildProcess,
  ) {}

  /** Resolves when the server accepts requests. */
  static async start(variables: Record<string, string>): Promise<PlatformServer> {
    // A container needs no options. On this machine, other programs may have the port of the metrics.
    const args = ["serve", "--http-address=127.0.0.1", "--allow-metrics=false"];
    const child = spawn(process.execPath, [command, ...args], {
      env: { ...process.env, ...variables },
      stdio: ["ignore", "inherit", "pipe"],
    });
    // A fault of this program ends the server too.
    process.once("exit", () => child.kill());
    let log = "";
    for await (const part of child.stderr.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
      log += part;
      const [, address] = /Started (?:Vertex AI|Sagemaker) HTTPService at ([\d.]+:\d+)/.exec(log) ?? [];
      if (address === undefined) continue;
      child.stderr.resume();
      return new PlatformServer(`http://${address}`, child);
    }
    throw new Error(`the server has ended: ${log}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.child, "exit");
    this.child.kill("SIGTERM");
    await ended;
  }
}
