import type { ModelConfig } from "@tritonjs/protocol";
import type { Log } from "../../observe/log/log.js";
import { AgentChain } from "./agent-chain.js";
import { checksum } from "./checksum.js";
import type { RepositoryAgent } from "./repository-agent.js";

/** Agents that are there without anybody registering them. */
export const BUILT_IN_AGENTS: Readonly<Record<string, RepositoryAgent>> = { checksum };

/** The agents of a repository, and the models that they look after. */
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
   * Tells the agents that a configuration names to load its model; unknown ones are refused elsewhere.
   *
   * @param read reads the configuration at a location
   * @returns undefined when it names none
   * @throws what an agent throws
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

  /** All models are gone. */
  async end(): Promise<void> {
    await Promise.all([...this.#chains].map((chain) => chain.end()));
  }
}
