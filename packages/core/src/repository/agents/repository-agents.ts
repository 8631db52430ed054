import type { ModelConfig } from "@tritonjs/protocol";
import type { Log } from "../../observe/log/log.js";
import { AgentChain } from "./agent-chain.js";
import { checksum } from "./checksum.js";
import type { RepositoryAgent } from "./repository-agent.js";

/** Agents that are registered without the program doing so. */
export const BUILT_IN_AGENTS: Readonly<Record<string, RepositoryAgent>> = { checksum };

/** The agents of a repository, and the models that they handle. */
export class RepositoryAgents {
  readonly #agents: ReadonlyMap<string, RepositoryAgent>;
  readonly #log: Log;
  readonly #chains = new Set<AgentChain>();

  /** @param own agents that the program registered; they come before those of the library */
  constructor(own: Readonly<Record<string, RepositoryAgent>>, log: Log) {
    this.#agents = new Map(Object.entries({ ...BUILT_IN_AGENTS, ...own }));
    this.#log = log;
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
    const chain = new AgentChain(modelName, location, this.#log, (gone) => this.#chains.delete(gone));
    this.#chains.add(chain);
    await chain.load(named, read);
    return chain;
  }

  /** Ends all chains after all models have unloaded. */
  async end(): Promise<void> {
    await Promise.all([...this.#chains].map((chain) => chain.end()));
  }
}
