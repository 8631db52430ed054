import type { ModelConfig } from "@tritonjs/protocol";
import { keyOf, type ModelId, type ModelKey } from "./model-id.js";

/** A model with what it may be made of. */
export interface DependencyNode {
  readonly id: ModelId;
  readonly config: ModelConfig;
  readonly explicit: boolean;
}

/** What the models of a repository need of each other: a picture of one moment. */
export class Dependencies {
  readonly #nodes: ReadonlyMap<ModelKey, DependencyNode>;
  readonly #byName = new Map<string, ModelKey[]>();
  readonly #dependents = new Map<ModelKey, Set<ModelKey>>();

  /** @param isBound tells of models that are not of the repository */
  constructor(
    nodes: ReadonlyMap<ModelKey, DependencyNode>,
    private readonly isBound: (name: string) => boolean,
  ) {
    this.#nodes = nodes;
    for (const [key, { id }] of nodes) {
      this.#byName.set(id.name, [...(this.#byName.get(id.name) ?? []), key]);
    }
    for (const key of nodes.keys()) {
      for (const member of this.membersOf(key)) {
        this.#dependents.set(member, (this.#dependents.get(member) ?? new Set()).add(key));
      }
    }
  }

  /** The model that a step means: of the same namespace, or the only one of the name. */
  memberFor(ensemble: ModelId, modelName: string): ModelKey | undefined {
    const preferred = keyOf({ namespace: ensemble.namespace, name: modelName });
    if (this.#nodes.has(preferred)) return preferred;
    const named = this.#byName.get(modelName) ?? [];
    return named.length === 1 ? named[0] : undefined;
  }

  /** Models of the repository that a model is made of. */
  membersOf(key: ModelKey): ReadonlySet<ModelKey> {
    const { id, config } = this.#nodes.get(key)!;
    const members = stepsOf(config).map(({ modelName }) => this.memberFor(id, modelName));
    return new Set(members.filter((member) => member !== undefined));
  }

  /** Names of models that a model is made of and that are nowhere, sorted. */
  missingOf(key: ModelKey): string[] {
    const { id, config } = this.#nodes.get(key)!;
    const missing = stepsOf(config)
      .map(({ modelName }) => modelName)
      .filter((name) => this.memberFor(id, name) === undefined && !this.isBound(name));
    return [...new Set(missing)].sort();
  }

  /** The models, and all that are made of them, directly or not. */
  withDependents(keys: Iterable<ModelKey>): Set<ModelKey> {
    const found = new Set<ModelKey>();
    const add = (key: ModelKey) => {
      if (found.has(key)) return;
      found.add(key);
      for (const dependent of this.#dependents.get(key) ?? []) add(dependent);
    };
    for (const key of keys) add(key);
    return found;
  }

  /**
   * The models that nobody needs once the given ones are gone: their members, the members of those and so on, that
   * were not loaded by their own names.
   */
  withOrphans(keys: Iterable<ModelKey>): Set<ModelKey> {
    const gone = new Set(keys);
    for (let before = -1; before !== gone.size; ) {
      before = gone.size;
      for (const key of [...gone]) {
        if (!this.#nodes.has(key)) continue;
        for (const member of this.membersOf(key)) {
          const users = [...(this.#dependents.get(member) ?? [])];
          if (!this.#nodes.get(member)!.explicit && users.every((user) => gone.has(user))) gone.add(member);
        }
      }
    }
    return gone;
  }

  /** What is wrong with the place of a model among the others; undefined for nothing. */
  problemOf(key: ModelKey): string | undefined {
    const { id } = this.#nodes.get(key)!;
    const missing = this.missingOf(key);
    if (missing.length > 0) {
      return `ensemble ${id.name} contains models that are not available or ambiguous: ${missing.join(", ")}`;
    }
    const last = this.#lastBefore(key);
    if (last === undefined) return undefined;
    return `circular dependency between ensembles: ${id.name} -> ... -> ${this.#nodes.get(last)!.id.name} -> ${id.name}`;
  }

  /** The model through which a model is made of itself. */
  #lastBefore(start: ModelKey): ModelKey | undefined {
    const seen = new Set<ModelKey>();
    const search = (from: ModelKey): ModelKey | undefined => {
      for (const member of this.membersOf(from)) {
        if (member === start) return from;
        if (seen.has(member)) continue;
        seen.add(member);
        const found = search(member);
        if (found !== undefined) return found;
      }
      return undefined;
    };
    return search(start);
  }
}

function stepsOf({ ensembleScheduling }: ModelConfig) {
  return ensembleScheduling?.step ?? [];
}
