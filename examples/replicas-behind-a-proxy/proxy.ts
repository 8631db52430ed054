import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

/** The proxies for which `deploy` has a configuration, and how they run in the foreground. */
const PRODUCTS = {
  haproxy: {
    file: "haproxy/haproxy.cfg",
    args: ["-W", "-f", "proxy.conf"],
    addresses: ({ http, grpc, metrics }: ProxyAddresses): Change[] => [
      ["bind :8000", `bind ${http}`],
      ["bind :8001", `bind ${grpc}`],
      ["bind :8404", `bind ${metrics}`],
    ],
  },
  nginx: {
    file: "nginx/nginx.conf",
    args: ["-p", ".", "-c", "proxy.conf", "-g", "daemon off;"],
    addresses: ({ http, grpc }: ProxyAddresses): Change[] => [
      ["listen 8000", `listen ${http}`],
      ["listen 8001", `listen ${grpc}`],
      ["/tmp/nginx.pid", "nginx.pid"],
    ],
  },
};

export type Product = keyof typeof PRODUCTS;

/** A text of a configuration, and what replaces it. */
type Change = readonly [from: string, to: string];

export const products = Object.keys(PRODUCTS) as Product[];

/** The path of a proxy's program; undefined if this machine lacks it. Debian's are outside a user's PATH. */
export function programOf(product: Product): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  return folders.map((folder) => join(folder, product)).find(existsSync);
}

/** Addresses of a server or a proxy. */
export interface Addresses {
  readonly http: string;
  readonly grpc: string;
}

interface ProxyAddresses extends Addresses {
  readonly metrics: string;
}

/** Applies changes to a configuration, which must contain each of their texts. */
function rewritten(config: string, changes: readonly Change[]): string {
  return changes.reduce((all, [from, to]) => {
    if (!all.includes(from)) throw new Error(`expected '${from}' in the configuration of the proxy`);
    return all.replaceAll(from, to);
  }, config);
}

/** A proxy before three replicas, with its file of `deploy`. Only the addresses are those of this machine. */
export class FrontProxy implements AsyncDisposable {
  private constructor(
    readonly addresses: Addresses,
    private readonly child: ChildProcess,
    private readonly folder: string,
  ) {}

  static async start(product: Product, replicas: readonly Addresses[]): Promise<FrontProxy> {
    const { file, args, addresses } = PRODUCTS[product];
    const deploy = new URL("../../../deploy/", import.meta.url);
    const [http, grpc, metrics] = (await freePorts(3)).map((port) => `127.0.0.1:${port}`) as [
      string,
      string,
      string,
    ];
    const config = rewritten(await readFile(new URL(file, deploy), "utf8"), [
      ...replicas.flatMap((replica, i): Change[] => [
        [`replica-${i + 1}:8000`, replica.http],
        [`replica-${i + 1}:8001`, replica.grpc],
      ]),
      ...addresses({ http, grpc, metrics }),
    ]);
    const folder = await mkdtemp(join(tmpdir(), "tritonjs-proxy-"));
    await writeFile(join(folder, "proxy.conf"), config);
    const child = spawn(programOf(product)!, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
    // A fault of this program ends the proxy too.
    process.once("exit", () => child.kill());
    const proxy = new FrontProxy({ http, grpc }, child, folder);
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (part: string) => {
      log += part;
    });
    const failed = once(child, "close").then(() => {
      throw new Error(`${product} has ended: ${log}`);
    });
    await Promise.race([proxy.#ready(), failed]);
    return proxy;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.child, "exit");
    this.child.kill("SIGTERM");
    await ended;
    await rm(this.folder, { recursive: true });
  }

  /** Resolves when the proxy passes on a request. */
  async #ready(): Promise<void> {
    for (;;) {
      const answer = await fetch(`http://${this.addresses.http}/v2/health/ready`).catch(() => undefined);
      if (answer?.ok) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

/** Ports that are free at the moment: the proxies cannot choose theirs. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}
