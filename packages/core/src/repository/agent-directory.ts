import { stat } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { loadBackend } from "../backends/find-backend.js";
import type { Log } from "../observe/log.js";
import { importUnbundled } from "../optional-packages.js";
import type { RepositoryAgent, RepositoryAgentAction } from "./repository-options.js";

/** The files that make a directory an agent, in the order of the search. */
const FILES = ["agent.js", "agent.mjs", "agent.cjs", "agent.ts", "agent.py"];

const ACTIONS: readonly RepositoryAgentAction[] = [
  "LOAD",
  "LOAD_COMPLETE",
  "LOAD_FAIL",
  "UNLOAD",
  "UNLOAD_COMPLETE",
];

/** An agent of a directory. It may hold a process. */
export interface FoundAgent {
  readonly agent: RepositoryAgent;
  /** Ends the process of the agent. */
  close(): void;
}

interface PythonPackage {
  pythonAgent(name: string, path: string, log: Log): FoundAgent;
}

/** Returns the path of an agent's file in a directory of agents; undefined if the directory has none of that name. */
export async function agentFile(directory: string, name: string): Promise<string | undefined> {
  if (!/^[^/\\\0]+$/.test(name) || name === "." || name === "..") return undefined;
  for (const file of FILES) {
    const path = join(directory, name, file);
    if (await isFile(path)) return path;
  }
  return undefined;
}

/** Describes why an agent is unknown, in Triton's words, and what to do. */
export async function missingAgent(name: string, directory: string | undefined): Promise<string> {
  const start = `unable to find 'libtritonrepoagent_${name}.so' for repo agent '${name}'`;
  if (directory === undefined) {
    return (
      `${start}: agents are functions here, and none has this name; register it with ` +
      `new Triton({ repositoryAgents: { ${name} } }), or set repositoryAgentDirectory (--repoagent-directory) to a ` +
      `directory with ${name}/agent.js or ${name}/agent.py`
    );
  }
  const library = join(directory, name, `libtritonrepoagent_${name}.so`);
  const why = (await isFile(library))
    ? `: '${library}' is a shared library for tritonserver, which cannot be loaded here; write the agent as`
    : ": an agent is a file";
  return `${start}, searched: ${directory}${why} ${name}/agent.js or ${name}/agent.py`;
}

/**
 * Loads the agent in a file: a module in this process, or a Python program in a process of its own.
 *
 * @throws TritonError for a file that cannot be imported or exports no action, and for Python without its package
 */
export async function loadAgent(name: string, path: string, log: Log): Promise<FoundAgent> {
  if (path.endsWith(".py")) {
    const { pythonAgent } = await loadBackend<PythonPackage>("python", `repository agent '${name}'`);
    return pythonAgent(name, path, log);
  }
  return { agent: await moduleAgent(name, path), close() {} };
}

type Exports = Readonly<Partial<Record<RepositoryAgentAction | "default", unknown>>>;

async function moduleAgent(name: string, path: string): Promise<RepositoryAgent> {
  let exported: Exports;
  try {
    exported = await importUnbundled<Exports>(pathToFileURL(path).href);
  } catch (cause) {
    const text = `repository agent '${name}': cannot import '${path}': ${TritonError.from(cause).message}`;
    throw errorFor("INVALID_MODEL", text, { cause });
  }
  const { default: main } = exported;
  if (typeof main === "function") return main as RepositoryAgent;
  const actions = isObject(main) ? (main as Exports) : exported;
  const wrong = ACTIONS.find((action) => !["function", "undefined"].includes(typeof actions[action]));
  if (wrong !== undefined || ACTIONS.every((action) => actions[action] === undefined)) {
    const got =
      wrong !== undefined
        ? `${wrong}: ${typeof actions[wrong]}`
        : Object.keys(actions).join(", ") || "nothing";
    const text =
      `repository agent '${name}': '${path}': expected a function as default export, or functions named ` +
      `${ACTIONS.join(", ")}, got ${got}`;
    throw errorFor("INVALID_MODEL", text);
  }
  return (action, model) => (actions[action] as AgentFunction | undefined)?.call(actions, model);
}

type AgentFunction = (model: Parameters<RepositoryAgent>[1]) => ReturnType<RepositoryAgent>;

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
