import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { pathToFileURL } from "node:url";
import type { Clock, Log } from "@tritonjs/core/extension";
import { assertInside, importUnbundled, isInside } from "@tritonjs/core/internal/worker";
import { errorFor, type ModelConfig, TritonError } from "@tritonjs/protocol";
import { loadBackend } from "../backends/find-backend.js";
import type { RepositoryAgent, RepositoryAgentAction, RepositoryOptions } from "../repository-options.js";

const ALGORITHMS: Readonly<Record<string, { readonly name: string; readonly digest: string }>> = {
  md5: { name: "MD5", digest: "md5" },
  sha256: { name: "SHA256", digest: "sha256" },
  "sha-256": { name: "SHA256", digest: "sha256" },
};

/**
 * The agent `checksum`: refuses to load a model whose files have changed. Its parameters are files with their hashes:
 * `key: "MD5:1/model.onnx" value: "..."`, or `SHA256:`.
 */
const checksum: RepositoryAgent = async (action, { location, parameters }) => {
  if (action !== "LOAD") return;
  for (const [key, expected] of Object.entries(parameters)) {
    const colon = key.indexOf(":");
    if (colon < 0) throw errorFor("INVALID_CONFIG", `failed to parse key: ${key}`);
    const algorithm = ALGORITHMS[key.slice(0, colon).toLowerCase()];
    if (algorithm === undefined) {
      throw new TritonError("UNSUPPORTED", `Unsupported checksum algorithm: ${key.slice(0, colon)}`);
    }
    const file = key.slice(colon + 1);
    const got = await hashOf(location, file, algorithm.digest);
    if (got !== expected.toLowerCase()) {
      throw errorFor(
        "INVALID_MODEL",
        `Mismatched ${algorithm.name} hash for file ${file}, expect: ${expected}, got: ${got}`,
      );
    }
  }
};

async function hashOf(location: string, file: string, digest: string): Promise<string> {
  const path = join(location, file);
  if (!isInside(location, path)) {
    throw errorFor("PATH_NOT_ALLOWED", `checksum of ${file}: expected a path inside the model's directory`);
  }
  await assertInside(location, path);
  const hash = createHash(digest);
  try {
    await pipeline(createReadStream(path), hash);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "No such file or directory" : message;
    throw errorFor("INVALID_MODEL", `failed to open text file for read ${file}: ${why}`, { cause });
  }
  return hash.digest("hex");
}

const BUILT_IN: Readonly<Record<string, RepositoryAgent>> = { checksum };

/**
 * Checks that the agents that a configuration names exist: as a function of the program or the library, or in the
 * directory of agents.
 *
 * @throws TritonError INVALID_ARG for the first one that does not
 */
export async function assertAgents(
  { modelRepositoryAgents }: ModelConfig,
  { repositoryAgents = {}, repositoryAgentDirectory: directory }: AgentOptions,
): Promise<void> {
  for (const { name } of modelRepositoryAgents?.agents ?? []) {
    if (Object.hasOwn(repositoryAgents, name) || Object.hasOwn(BUILT_IN, name)) continue;
    if (directory !== undefined && (await agentFile(directory, name)) !== undefined) continue;
    throw errorFor("INVALID_CONFIG", await missingAgent(name, directory));
  }
}

type AgentOptions = Pick<
  RepositoryOptions,
  "repositoryAgents" | "repositoryAgentDirectory" | "repositoryAgentTimeoutSecs"
>;

export class RepositoryAgents {
  readonly #agents: ReadonlyMap<string, RepositoryAgent>;
  /** Agents of the directory that models have used. A failed import is repeated with the next load. */
  readonly #programs = new Map<string, Promise<FoundAgent>>();
  readonly #chains = new Set<AgentChain>();

  constructor(
    private readonly options: AgentOptions,
    private readonly log: Log,
    private readonly clock: Pick<Clock, "setTimer">,
  ) {
    this.#agents = new Map(Object.entries({ ...BUILT_IN, ...options.repositoryAgents }));
  }

  /**
   * Asks the agents that a configuration names to load its model. Their existence is checked elsewhere.
   *
   * @param read reads the configuration at a location
   * @returns undefined when the configuration names no agents
   * @throws the error of an agent
   */
  async load(
    modelName: string,
    location: string,
    { modelRepositoryAgents }: ModelConfig,
    read: (location: string) => Promise<ModelConfig>,
  ): Promise<AgentChain | undefined> {
    const named: NamedAgent[] = [];
    for (const { name, parameters = {} } of modelRepositoryAgents?.agents ?? []) {
      named.push({ name, agent: this.#agents.get(name) ?? (await this.#program(name)), parameters });
    }
    if (named.length === 0) return undefined;
    const limit = new ActionLimit(this.options.repositoryAgentTimeoutSecs ?? 300, this.clock);
    const chain = new AgentChain(modelName, location, this.log, limit, (gone) => this.#chains.delete(gone));
    this.#chains.add(chain);
    await chain.load(named, read);
    return chain;
  }

  /** Ends all chains after all models have unloaded. */
  async end(): Promise<void> {
    await Promise.all([...this.#chains].map((chain) => chain.end()));
    for (const program of this.#programs.values())
      await program.then((found) => found.close()).catch(() => {});
  }

  async #program(name: string): Promise<RepositoryAgent> {
    const known = this.#programs.get(name);
    if (known !== undefined) return (await known).agent;
    const directory = this.options.repositoryAgentDirectory!;
    const loading = agentFile(directory, name).then((path) => loadAgent(name, path!, this.log));
    this.#programs.set(name, loading);
    try {
      return (await loading).agent;
    } catch (error) {
      this.#programs.delete(name);
      throw error;
    }
  }
}

/** The time that an agent has for an action. */
class ActionLimit {
  constructor(
    private readonly seconds: number,
    private readonly clock: Pick<Clock, "setTimer">,
  ) {}

  /** Runs an action. Rejects, and aborts its signal, when the time is over. */
  run<T>(what: string, action: (signal: AbortSignal) => T | Promise<T>): Promise<T> {
    const late = new AbortController();
    return new Promise((resolve, reject) => {
      const timer = this.clock.setTimer(this.seconds * 1000, () => {
        const text = `${what}: expected an answer within ${this.seconds} s (repositoryAgentTimeoutSecs), got none`;
        const error = errorFor("INVALID_MODEL", text);
        reject(error);
        late.abort(error);
      });
      const running = (async () => action(late.signal))();
      running.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}

interface NamedAgent {
  readonly name: string;
  readonly agent: RepositoryAgent;
  readonly parameters: Readonly<Record<string, string>>;
}

/** An agent, and the model as it was when the agent got LOAD. */
interface Link extends NamedAgent {
  readonly location: string;
  readonly config: ModelConfig;
}

type State = "loading" | "loaded" | "failed" | "unloading" | "gone";

/**
 * The agents of one load of a model, in the order in which the configuration names them. The versions of the model hold
 * the chain. The agents get the unload actions with the last version.
 */
export class AgentChain {
  readonly #links: Link[] = [];
  readonly #folders: string[] = [];
  #state: State = "loading";
  #serving = 0;
  #held = 0;
  /** Settles when the agents have handled all actions so far. Actions are sent one after the other. */
  #sent: Promise<void> = Promise.resolve();
  #ending: Promise<void> | undefined;

  constructor(
    private readonly modelName: string,
    public location: string,
    private readonly log: Log,
    private readonly limit: ActionLimit,
    private readonly onGone: (chain: AgentChain) => void,
  ) {}

  /**
   * Asks the agents to load the model.
   *
   * @param read reads the configuration at a location
   * @throws the error of an agent, after all agents that got LOAD have got LOAD_FAIL
   */
  async load(agents: readonly NamedAgent[], read: (location: string) => Promise<ModelConfig>): Promise<void> {
    try {
      for (const one of agents) {
        const link = { ...one, location: this.location, config: await read(this.location) };
        this.#links.push(link);
        await this.#invoke(link, "LOAD");
      }
    } catch (error) {
      await this.failed();
      throw error;
    }
  }

  async completed(): Promise<void> {
    if (this.#state !== "loading") return;
    this.#state = "loaded";
    await this.#send("LOAD_COMPLETE");
    if (this.#serving === 0) await this.end();
  }

  async failed(): Promise<void> {
    if (this.#state !== "loading") return;
    this.#state = "failed";
    await this.#send("LOAD_FAIL");
    if (this.#held === 0) await this.#release();
  }

  /** Holds the chain for a version. @returns callbacks for when the version leaves service, and when it is unloaded */
  hold(): { leaves(): void; gone(): void } {
    this.#serving++;
    this.#held++;
    return {
      leaves: () => {
        this.#serving--;
        if (this.#serving === 0 && this.#state === "loaded") void this.#unload();
      },
      gone: () => {
        this.#held--;
        if (this.#held > 0) return;
        if (this.#state === "unloading") void this.end();
        else if (this.#state === "failed") void this.#release();
      },
    };
  }

  /** Ends the chain at once, whether or not versions hold it. */
  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    if (this.#state === "gone") return;
    if (this.#state === "loading") await this.failed();
    if (this.#state === "loaded") await this.#unload();
    if (this.#state === "unloading") await this.#send("UNLOAD_COMPLETE");
    await this.#release();
  }

  async #unload(): Promise<void> {
    this.#state = "unloading";
    await this.#send("UNLOAD");
  }

  async #release(): Promise<void> {
    this.#state = "gone";
    this.onGone(this);
    for (const folder of this.#folders) await rm(folder, { recursive: true, force: true }).catch(() => {});
  }

  /** Sends all agents an action that they cannot prevent. */
  #send(action: RepositoryAgentAction): Promise<void> {
    this.#sent = this.#sent.then(async () => {
      for (const link of this.#links) {
        try {
          await this.#invoke(link, action);
        } catch (error) {
          const { message } = TritonError.from(error);
          this.log.error(
            `repository agent '${link.name}' failed at ${action} of '${this.modelName}': ${message}`,
          );
        }
      }
    });
    return this.#sent;
  }

  async #invoke(link: Link, action: RepositoryAgentAction): Promise<void> {
    const { name, agent, location, config, parameters } = link;
    const { modelName } = this;
    const what = `repository agent '${name}' of model '${modelName}': ${action}`;
    const moved = await this.limit.run(what, (signal) => {
      const replaceLocation = async () => {
        if (action !== "LOAD")
          throw new TritonError(
            "INVALID_ARG",
            `an agent can replace the location of a model at LOAD only, got ${action}`,
          );
        signal.throwIfAborted();
        const folder = await realpath(await mkdtemp(join(tmpdir(), "tritonjs-")));
        this.#folders.push(folder);
        this.location = folder;
        return folder;
      };
      return agent(action, { modelName, location, config, parameters, replaceLocation, signal });
    });
    if (action === "LOAD" && moved !== undefined) this.location = await directoryOf(what, moved);
  }
}

/** The directory that an agent returned. */
async function directoryOf(what: string, returned: unknown): Promise<string> {
  const isPath = typeof returned === "string" && isAbsolute(returned);
  const found = isPath ? await stat(returned).catch(() => undefined) : undefined;
  if (found?.isDirectory()) return realpath(returned as string);
  const got = typeof returned === "string" ? `'${returned}'` : typeof returned;
  throw errorFor(
    "INVALID_MODEL",
    `${what}: expected the absolute path of a directory, or nothing, got ${got}`,
  );
}

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
interface FoundAgent {
  readonly agent: RepositoryAgent;
  /** Ends the process of the agent. Resolves when its last lines are in the log. */
  close(): Promise<void>;
}

interface PythonPackage {
  pythonAgent(name: string, path: string, log: Log): FoundAgent;
}

/** Returns the path of an agent's file in a directory of agents; undefined if the directory has none of that name. */
async function agentFile(directory: string, name: string): Promise<string | undefined> {
  if (!/^[^/\\\0]+$/.test(name) || name === "." || name === "..") return undefined;
  for (const file of FILES) {
    const path = resolve(directory, name, file);
    if (await isFile(path)) return path;
  }
  return undefined;
}

/** Describes why an agent is unknown, in Triton's words, and what to do. */
async function missingAgent(name: string, directory: string | undefined): Promise<string> {
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
async function loadAgent(name: string, path: string, log: Log): Promise<FoundAgent> {
  if (path.endsWith(".py")) {
    const { pythonAgent } = await loadBackend<PythonPackage>("python", `repository agent '${name}'`);
    return pythonAgent(name, path, log);
  }
  return { agent: await moduleAgent(name, path), async close() {} };
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
