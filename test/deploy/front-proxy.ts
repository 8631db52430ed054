import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { freePorts } from "../support/free-ports.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import type { ReplicaPorts } from "./replica.js";

/** Debian's programs are in directories that a user's PATH may lack. */
const PLACES = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];

/** The path of a program of this machine; undefined if it lacks the program. */
export function programOf(name: string): string | undefined {
  return PLACES.map((place) => join(place, name)).find(existsSync);
}

/** Products for which `deploy` has a configuration. */
export type Product = "haproxy" | "nginx";

/** The files of `deploy`, and the arguments that run them in the foreground. */
const PRODUCTS: Readonly<
  Record<Product, { file: string; args: (config: string, folder: string) => string[] }>
> = {
  haproxy: { file: "deploy/haproxy/haproxy.cfg", args: (config) => ["-W", "-f", config] },
  nginx: {
    file: "deploy/nginx/nginx.conf",
    args: (config, folder) => ["-p", folder, "-c", config, "-g", "daemon off;"],
  },
};

/** Replaces each of `changes` in a configuration, which must have it. */
function rewritten(text: string, changes: readonly (readonly [from: string, to: string])[]): string {
  return changes.reduce((all, [from, to]) => {
    if (!all.includes(from)) throw new Error(`the configuration does not contain '${from}'`);
    return all.replaceAll(from, to);
  }, text);
}

/** A proxy before replicas, with its configuration of `deploy` at other addresses. */
export class FrontProxy implements AsyncDisposable {
  readonly http: string;
  readonly grpc: string;
  readonly metrics: string;
  readonly #program: Program;
  readonly #folder: string;

  private constructor(program: Program, folder: string, ports: readonly number[]) {
    [this.http, this.grpc, this.metrics] = ports.map((port) => `127.0.0.1:${port}`) as [
      string,
      string,
      string,
    ];
    this.#program = program;
    this.#folder = folder;
  }

  /** Starts a proxy. Resolves when it accepts connections. */
  static async start(product: Product, replicas: readonly ReplicaPorts[]): Promise<FrontProxy> {
    const folder = mkdtempSync(join(tmpdir(), "tritonjs-proxy-"));
    const ports = await freePorts(3);
    const [http, grpc, metrics] = ports;
    const { file, args } = PRODUCTS[product];
    const addresses = replicas.flatMap((replica, i) => [
      [`replica-${i + 1}:8000`, `127.0.0.1:${replica.http}`] as const,
      [`replica-${i + 1}:8001`, `127.0.0.1:${replica.grpc}`] as const,
    ]);
    const own =
      product === "haproxy"
        ? ([
            ["bind :8000", `bind 127.0.0.1:${http}`],
            ["bind :8001", `bind 127.0.0.1:${grpc}`],
            ["bind :8404", `bind 127.0.0.1:${metrics}`],
          ] as const)
        : ([
            ["listen 8000", `listen 127.0.0.1:${http}`],
            ["listen 8001", `listen 127.0.0.1:${grpc}`],
            ["/tmp/nginx.pid", join(folder, "nginx.pid")],
          ] as const);
    const config = join(folder, "proxy.conf");
    writeFileSync(
      config,
      rewritten(readFileSync(join(repositoryRoot, file), "utf8"), [...addresses, ...own]),
    );
    const program = new Program(programOf(product)!, args(config, folder), { cwd: folder });
    const proxy = new FrontProxy(program, folder, ports);
    const ended = program.ended.then(({ stderr }) => {
      throw new Error(`${product} ended: ${stderr}`);
    });
    ended.catch(() => {});
    await Promise.race([proxy.#listening(), ended]);
    return proxy;
  }

  /** Number of replicas that HAProxy sends new requests to. */
  async upCount(): Promise<number> {
    const page = await (await fetch(`http://${this.metrics}/metrics`)).text();
    return page.match(/^haproxy_server_status\{proxy="http_requests",.*state="UP"\} 1$/gm)?.length ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#program.signal("SIGTERM");
    await this.#program.ended;
    rmSync(this.#folder, { recursive: true });
  }

  async #listening(): Promise<void> {
    for (;;) {
      const ok = await fetch(`http://${this.http}/v2/health/ready`).then(
        (answer) => answer.ok,
        () => false,
      );
      if (ok) return;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
