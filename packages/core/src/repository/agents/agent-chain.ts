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
  #told: Promise<void> = Promise.resolve();

  constructor(
    private readonly modelName: string,
    /** Directory that the model is loaded from. */
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

  /** Reports that the model is in service. */
  async completed(): Promise<void> {
    if (this.#state !== "loading") return;
    this.#state = "loaded";
    await this.#tell("LOAD_COMPLETE");
    if (this.#serving === 0) await this.end();
  }

  /** Reports that the model cannot be loaded. */
  async failed(): Promise<void> {
    if (this.#state !== "loading") return;
    this.#state = "failed";
    await this.#tell("LOAD_FAIL");
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

  /** Sends all agents an action that they cannot prevent. */
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
