import { join } from "node:path";
import { Program } from "../../support/program.js";
import { repositoryRoot } from "../../support/repository.js";

const FREE_PORTS = { "http-port": 0, "grpc-port": 0, "metrics-port": 0 };

/** Starts the quick start, by default on free ports. */
export function startQuickstart(
  args: readonly string[] = [],
  ports: Partial<Record<keyof typeof FREE_PORTS, number>> = {},
): Program {
  const main = join(repositoryRoot, "examples", "quickstart", "dist", "main.js");
  const options = Object.entries({ ...FREE_PORTS, ...ports }).map(([name, port]) => `--${name}=${port}`);
  return Program.node(main, [...options, ...args], repositoryRoot);
}

/** A line to paste into a shell, as a fetch. */
export interface CurlLine {
  readonly url: string;
  /** The body of a POST. */
  readonly data?: string;
}

/** The curl lines of a text. */
export function curlLines(text: string): CurlLine[] {
  return [...text.matchAll(/^\s*curl (\S+)(?: -i)?(?: -d '([^']*)')?$/gm)].map(([, url, data]) => ({
    url: url!,
    data,
  }));
}

/** Runs a curl line and resolves with the body of a good answer. */
export async function runCurlLine({ url, data }: CurlLine): Promise<string> {
  const response = await fetch(url, data === undefined ? {} : { method: "POST", body: data });
  const body = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${body}`);
  return body;
}
