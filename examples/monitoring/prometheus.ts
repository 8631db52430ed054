import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Alert {
  readonly state: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface ExemplarSeries {
  readonly seriesLabels: Readonly<Record<string, string>>;
  readonly exemplars: readonly { readonly labels: Readonly<Record<string, string>> }[];
}

/**
 * Starts a Prometheus that scrapes a server twice a second.
 *
 * @param server URL of its metrics port
 * @param rules path of a file with alert rules
 * @returns undefined if Prometheus is not installed
 */
export async function startPrometheus(server: string, rules: string): Promise<Prometheus | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "prometheus-"));
  // JSON is YAML.
  const config = {
    global: { scrape_interval: "500ms", evaluation_interval: "500ms" },
    rule_files: [rules],
    scrape_configs: [{ job_name: "tritonjs", static_configs: [{ targets: [new URL(server).host] }] }],
  };
  const configFile = join(folder, "prometheus.yml");
  await writeFile(configFile, JSON.stringify(config));
  const args = [
    `--config.file=${configFile}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    "--web.listen-address=127.0.0.1:0",
    "--enable-feature=exemplar-storage",
  ];
  const program = spawn("prometheus", args, { stdio: ["ignore", "ignore", "pipe"] });
  try {
    await once(program, "spawn");
  } catch (error) {
    await rm(folder, { recursive: true });
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return new Prometheus(program, folder, `http://${await addressOf(program)}/api/v1`);
}

/** The address from the log of a Prometheus, once it is ready. */
async function addressOf(program: ChildProcess): Promise<string> {
  let log = "";
  for await (const part of program.stderr!.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    log += part;
    const [, address] = /msg="Listening on"[^\n]* address=(\S+).*msg="Server is ready/s.exec(log) ?? [];
    if (address !== undefined) {
      program.stderr!.resume();
      return address;
    }
  }
  throw new Error(`Prometheus has ended: ${log}`);
}

/** A running Prometheus, and its answers over its HTTP API. */
export class Prometheus {
  readonly #program: ChildProcess;
  readonly #folder: string;
  readonly #api: string;

  constructor(program: ChildProcess, folder: string, api: string) {
    this.#program = program;
    this.#folder = folder;
    this.#api = api;
  }

  /** Alerts that are pending or firing. */
  async alerts(): Promise<Alert[]> {
    const { alerts } = await this.#get<{ alerts: Alert[] }>("alerts", {});
    return alerts;
  }

  /** The present values of a query, without those that are not a number. */
  async query(query: string): Promise<number[]> {
    const { result } = await this.#get<{ result: { value: [number, string] }[] }>("query", { query });
    return result.map(({ value: [, text] }) => Number(text)).filter((value) => !Number.isNaN(value));
  }

  exemplars(query: string): Promise<ExemplarSeries[]> {
    const now = Date.now() / 1000;
    return this.#get("query_exemplars", { query, start: `${now - 60}`, end: `${now}` });
  }

  async #get<T>(path: string, parameters: Record<string, string>): Promise<T> {
    const answer = await fetch(`${this.#api}/${path}?${new URLSearchParams(parameters)}`);
    const { data, error } = (await answer.json()) as { data: T; error?: string };
    if (error !== undefined) throw new Error(`Prometheus refuses ${JSON.stringify(parameters)}: ${error}`);
    return data;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#program, "exit");
    this.#program.kill("SIGTERM");
    await ended;
    await rm(this.#folder, { recursive: true });
  }
}
