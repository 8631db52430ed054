import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";

import type { Log } from "../../observe/log/log.js";
import type { RepositoryAgent, RepositoryAgentAction } from "./repository-agent.js";

/** An agent that a configuration names. */
export interface NamedAgent {
  readonly name: string;
  readonly agent: RepositoryAgent;
  readonly parameters: Readonly<Record<string, string>>;
}

/** An agent with the model as it was when the agent was told to load it. */
interface Link extends NamedAgent {
  readonly location: string;
  readonly config: ModelConfig;
}

type State = "loading" | "loaded" | "failed" | "unloading" | "gone";

/**
 * The agents of one load of a model, in the order in which the configuration names them. Its versions hold it: with the
 * last one the model is unloaded.
 */
export class AgentChain {
  readonly #links: Link[] = [];
  readonly #folders: string[] = [];
  #state: State = "loading";
  #serving = 0;
  #held = 0;
  /** What agents are told, one after the other. */
  #told: Promise<void> = Promise.resolve();

  constructor(
    private readonly modelName: string,
    /** Directory that the model is loaded from. */
    public location: string,
    private readonly log: Log,
    private readonly onGone: (chain: AgentChain) => void,
  ) {}

  /**
   * Tells agents to load the model.
   *
   * @param read reads the configuration at a location
   * @throws what an agent throws, after all that were told are told that loading failed
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

  /** The model is in service. */
  async completed(): Promise<void> {
    if (this.#state !== "loading") return;
    this.#state = "loaded";
    await this.#tell("LOAD_COMPLETE");
    if (this.#serving === 0) await this.end();
  }

  /** The model cannot be loaded. */
  async failed(): Promise<void> {
    if (this.#state !== "loading") return;
    this.#state = "failed";
    await this.#tell("LOAD_FAIL");
    if (this.#held === 0) await this.#release();
  }

  /** A version is made of what is here. @returns what to call when it leaves service, and when it is gone */
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

  /** The model is gone, whoever held it. */
  async end(): Promise<void> {
    if (this.#state === "gone") return;
    if (this.#state === "loading") await this.failed();
    if (this.#state === "loaded") await this.#unload();
    if (this.#state === "unloading") await this.#tell("UNLOAD_COMPLETE");
    await this.#release();
  }

  async #unload(): Promise<void> {
    this.#state = "unloading";
    await this.#tell("UNLOAD");
  }

  async #release(): Promise<void> {
    this.#state = "gone";
    this.onGone(this);
    for (const folder of this.#folders) await rm(folder, { recursive: true, force: true }).catch(() => {});
  }

  /** Tells all agents of something that they cannot prevent any more. */
  #tell(action: RepositoryAgentAction): Promise<void> {
    this.#told = this.#told.then(async () => {
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
    return this.#told;
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
