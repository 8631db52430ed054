import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { errorFor, type ModelConfig, TritonError } from "@tritonjs/protocol";
import type { Log } from "../observe/log.js";
import { assertInside, isInside } from "../system/files.js";
import type { RepositoryAgent, RepositoryAgentAction } from "./repository-options.js";

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

/** Agents that are registered without the program doing so. */
export const BUILT_IN_AGENTS: Readonly<Record<string, RepositoryAgent>> = { checksum };

export class RepositoryAgents {
  readonly #agents: ReadonlyMap<string, RepositoryAgent>;
  readonly #chains = new Set<AgentChain>();

  /** @param own agents that the program registered; they come before those of the library */
  constructor(
    own: Readonly<Record<string, RepositoryAgent>>,
    private readonly log: Log,
  ) {
    this.#agents = new Map(Object.entries({ ...BUILT_IN_AGENTS, ...own }));
  }

  get names(): readonly string[] {
    return [...this.#agents.keys()];
  }

  /**
   * Asks the agents that a configuration names to load its model. Unknown agents are rejected elsewhere.
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
    const named = (modelRepositoryAgents?.agents ?? []).flatMap(({ name, parameters }) => {
      const agent = this.#agents.get(name);
      return agent === undefined ? [] : [{ name, agent, parameters: parameters ?? {} }];
    });
    if (named.length === 0) return undefined;
    const chain = new AgentChain(modelName, location, this.log, (gone) => this.#chains.delete(gone));
    this.#chains.add(chain);
    await chain.load(named, read);
    return chain;
  }

  /** Ends all chains after all models have unloaded. */
  async end(): Promise<void> {
    await Promise.all([...this.#chains].map((chain) => chain.end()));
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

  constructor(
    private readonly modelName: string,
    public location: string,
    private readonly log: Log,
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
  async end(): Promise<void> {
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

  async #invoke({ agent, location, config, parameters }: Link, action: RepositoryAgentAction): Promise<void> {
    const replaceLocation = async () => {
      if (action !== "LOAD")
        throw new TritonError(
          "INVALID_ARG",
          `an agent can replace the location of a model at LOAD only, got ${action}`,
        );
      const folder = await realpath(await mkdtemp(join(tmpdir(), "tritonjs-")));
      this.#folders.push(folder);
      this.location = folder;
      return folder;
    };
    await agent(action, { modelName: this.modelName, location, config, parameters, replaceLocation });
  }
}
