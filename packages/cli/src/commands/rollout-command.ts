import { errorFor, TritonError } from "@tritonjs/protocol";
import { Argument, Command } from "commander";
import type { CommandContext } from "../command-context.js";

const ACTIONS = ["status", "start", "share", "pause", "resume", "promote", "rollback", "remove"] as const;

type Action = (typeof ACTIONS)[number];

interface Options {
  readonly url: string;
  readonly token?: string;
  readonly json?: boolean;
}

/** `tritonjs rollout`: reads and changes the rollout of a model on a server. */
export function rolloutCommand({ terminal, finish }: CommandContext): Command {
  return new Command("rollout")
    .description("read, start or change the rollout of a model on a running server")
    .addArgument(new Argument("<action>").choices(ACTIONS))
    .argument("<model>", "name of the model")
    .argument(
      "[options...]",
      "options of a new rollout (from=1 to=2 share=10), or the percentage for `share`",
    )
    .option("--url <url>", "address of the server's HTTP port", "http://localhost:8000")
    .option("--token <token>", "access token of the group model-repository")
    .option("--json", "print the whole rollout as JSON")
    .action(async (action: Action, model: string, given: readonly string[], options: Options) => {
      try {
        const request = await requestOf(action, given);
        const report = await send(model, request, options);
        terminal.write(options.json ? `${JSON.stringify(report, undefined, 2)}\n` : textOf(report));
        finish(0);
      } catch (error) {
        terminal.writeError(`${TritonError.from(error).message}\n`);
        finish(1);
      }
    });
}

/** The body of a request; undefined to read only. */
async function requestOf(action: Action, given: readonly string[]): Promise<object | undefined> {
  if (action === "status") return undefined;
  if (action === "share") return { share: Number(given[0]) };
  if (action !== "start") return { action };
  const { rolloutOfTexts } = await import("@tritonjs/operations/rollout");
  return rolloutOfTexts(given.map(readPair));
}

function readPair(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw errorFor("INVALID_OPTION", `option of a rollout: expected <name>=<value>, got '${text}'`);
}

interface Report {
  readonly model: string;
  readonly from: number;
  readonly to: number;
  readonly state: string;
  readonly share: number;
  readonly waitsFor?: string;
  readonly inFlight: number;
  readonly verdict: {
    readonly decision: string;
    readonly reasons: readonly { readonly check: string; readonly text: string }[];
    readonly old: { readonly requests: number; readonly errors: number };
    readonly new: { readonly requests: number; readonly errors: number };
    readonly shadow: { readonly answered: number };
  };
}

async function send(model: string, body: object | undefined, { url, token }: Options): Promise<Report> {
  const path = `v2/repository/models/${encodeURIComponent(model)}/rollout`;
  const headers = { ...(token !== undefined && { "triton-access-token": token }) };
  let response: Response;
  try {
    response = await fetch(new URL(path, url.endsWith("/") ? url : `${url}/`), {
      headers,
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    });
  } catch (cause) {
    throw errorFor("CONNECTION_FAILED", `cannot reach ${url}: ${reasonOf(cause)}`, { cause });
  }
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as Report;
  let message = text;
  try {
    message = (JSON.parse(text) as { readonly error: string }).error;
  } catch {
    // The text of another server.
  }
  throw new TritonError("UNKNOWN", message || `${url} answered with status ${response.status}`);
}

function reasonOf(error: unknown): string {
  const { cause } = error as { readonly cause?: unknown };
  return TritonError.from(cause ?? error).message;
}

function textOf({ model, from, to, state, share, waitsFor, inFlight, verdict }: Report): string {
  const version = (name: string, { requests, errors }: Report["verdict"]["old"]) =>
    `  version ${name}: ${requests} requests, ${errors} errors\n`;
  const reasons = verdict.reasons.map(({ check, text }) => `  ${check}: ${text}\n`).join("");
  return (
    `${model}: ${from} -> ${to}, ${state.replace("_", " ")}, ${share}% of the requests, ${verdict.decision}\n` +
    version(String(from), verdict.old) +
    version(String(to), verdict.new) +
    (inFlight > 0 ? `  in flight: ${inFlight}\n` : "") +
    (waitsFor === undefined ? "" : `  the step waits: ${waitsFor}\n`) +
    (verdict.shadow.answered > 0 ? `  shadows: ${verdict.shadow.answered}\n` : "") +
    reasons
  );
}
