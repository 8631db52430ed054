import { errorFor, type ModelConfig } from "@tritonjs/protocol";

/** A model of a repository: its name, and its repository if namespaces are on. */
export interface ModelId {
  /** Path of the repository if namespaces are on, otherwise empty. */
  readonly namespace: string;
  readonly name: string;
}

/** A model id as the key of a map. */
export type ModelKey = string;

export function keyOf({ namespace, name }: ModelId): ModelKey {
  return `${namespace}\0${name}`;
}

export function nameOf(key: ModelKey): string {
  return key.slice(key.indexOf("\0") + 1);
}

/** Order of the index: by repository, then by name. */
export function compareIds(a: ModelId, b: ModelId): number {
  return compare(a.namespace, b.namespace) || compare(a.name, b.name);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Rejects names that cannot be a directory inside a repository, with Triton's texts. */
export function checkModelName(name: string): void {
  const trimmed = name.trim();
  if (trimmed === "") {
    throw errorFor(
      "INVALID_LOAD_REQUEST",
      "Model name cannot be empty. Please enter a valid name to deploy.",
    );
  }
  if (trimmed === "." || trimmed === ".." || /[/\\\0]/.test(trimmed)) {
    throw errorFor(
      "INVALID_LOAD_REQUEST",
      `invalid model name '${name}', model name must not contain path traversal characters`,
    );
  }
}

export interface DependencyNode {
  readonly id: ModelId;
  readonly config: ModelConfig;
  readonly explicit: boolean;
}

/** A snapshot of the dependencies between the models of a repository. */
export class Dependencies {
  readonly #byName = new Map<string, ModelKey[]>();
  readonly #dependents = new Map<ModelKey, Set<ModelKey>>();

  /** @param isBound whether a model is bound by the program rather than in the repository */
  constructor(
    private readonly nodes: ReadonlyMap<ModelKey, DependencyNode>,
    private readonly isBound: (name: string) => boolean,
  ) {
    for (const [key, { id }] of nodes) {
      this.#byName.set(id.name, [...(this.#byName.get(id.name) ?? []), key]);
    }
    for (const key of nodes.keys()) {
      for (const member of this.membersOf(key)) {
        this.#dependents.set(member, (this.#dependents.get(member) ?? new Set()).add(key));
      }
    }
  }

  /** The model that a step refers to: the model of the same namespace, or the only model of the name. */
  memberFor(ensemble: ModelId, modelName: string): ModelKey | undefined {
    const preferred = keyOf({ namespace: ensemble.namespace, name: modelName });
    if (this.nodes.has(preferred)) return preferred;
    const named = this.#byName.get(modelName) ?? [];
    return named.length === 1 ? named[0] : undefined;
  }

  membersOf(key: ModelKey): ReadonlySet<ModelKey> {
    const { id, config } = this.nodes.get(key)!;
    const members = stepsOf(config).map(({ modelName }) => this.memberFor(id, modelName));
    return new Set(members.filter((member) => member !== undefined));
  }

  /** Sorted names of the missing models that a model is made of. */
  missingOf(key: ModelKey): string[] {
    const { id, config } = this.nodes.get(key)!;
    const missing = stepsOf(config)
      .map(({ modelName }) => modelName)
      .filter((name) => this.memberFor(id, name) === undefined && !this.isBound(name));
    return [...new Set(missing)].sort();
  }

  /** The models, and all models that depend on them, directly or not. */
  withDependents(keys: Iterable<ModelKey>): Set<ModelKey> {
    const found = new Set(keys);
    // A set also visits what is added meanwhile.
    for (const key of found) for (const dependent of this.#dependents.get(key) ?? []) found.add(dependent);
    return found;
  }

  /** Models that no other one needs after these are unloaded, without those that were loaded by their own names. */
  withOrphans(keys: Iterable<ModelKey>): Set<ModelKey> {
    const gone = new Set(keys);
    // The last user of a member that goes finds it.
    for (const key of gone) {
      if (!this.nodes.has(key)) continue;
      for (const member of this.membersOf(key)) {
        const users = [...(this.#dependents.get(member) ?? [])];
        if (!this.nodes.get(member)!.explicit && users.every((user) => gone.has(user))) gone.add(member);
      }
    }
    return gone;
  }

  problemOf(key: ModelKey): string | undefined {
    const { id } = this.nodes.get(key)!;
    const missing = this.missingOf(key);
    if (missing.length > 0) {
      return `ensemble ${id.name} contains models that are not available or ambiguous: ${missing.join(", ")}`;
    }
    const last = this.#lastBefore(key);
    if (last === undefined) return undefined;
    return `circular dependency between ensembles: ${id.name} -> ... -> ${this.nodes.get(last)!.id.name} -> ${id.name}`;
  }

  /** The model before `start` on a cycle of dependencies; undefined when there is no cycle. */
  #lastBefore(start: ModelKey): ModelKey | undefined {
    const seen = new Set([start]);
    for (const from of seen) {
      for (const member of this.membersOf(from)) {
        if (member === start) return from;
        seen.add(member);
      }
    }
    return undefined;
  }
}

function stepsOf({ ensembleScheduling }: ModelConfig) {
  return ensembleScheduling?.step ?? [];
}
