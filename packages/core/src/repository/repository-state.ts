import { statusText, type TritonError } from "@tritonjs/protocol";

import type { Log } from "../observe/log/log.js";
import type { ModelCopy } from "./cloud/model-copy.js";
import { keyOf, type ModelId, type ModelKey, nameOf } from "./model-id.js";
import type { PolledModel } from "./poll-model.js";

/** The known state of the models of the repository. */
export class RepositoryState {
  readonly models = new Map<ModelKey, PolledModel>();
  /** Why models cannot be in service apart from their files: for ensembles that lack a member. */
  readonly invalid = new Map<ModelKey, string>();
  /** Why the last load of each model failed. */
  readonly failed = new Map<ModelKey, string>();
  /** Why directories could not be read. */
  readonly #unread = new Map<ModelKey, string>();

  constructor(private readonly log: Log) {}

  /** Models of a name, in all namespaces. */
  named(name: string): [ModelKey, PolledModel][] {
    return [...this.models].filter(([, { id }]) => id.name === name);
  }

  /** The reason why a model is not served. */
  problemOf(key: ModelKey): string | undefined {
    return this.#unread.get(key) ?? this.invalid.get(key) ?? this.failed.get(key);
  }

  /** The reason why a model of the name is not served, in any namespace. */
  problemOfName(name: string): string | undefined {
    const reasons = [...this.#unread, ...this.invalid, ...this.failed];
    return reasons.find(([key]) => nameOf(key) === name)?.[1];
  }

  /** The copies that models use. */
  copies(): ReadonlySet<ModelCopy> {
    return new Set([...this.models.values()].flatMap(({ copy }) => copy ?? []));
  }

  /** Why models are not in service, one line for each model. */
  failures(): string[] {
    return [...this.models].flatMap(([key, { id }]) => {
      const failure = this.invalid.get(key) ?? this.failed.get(key);
      return failure === undefined ? [] : [`${id.name}: ${failure}`];
    });
  }

  /** Records why a directory could not be read, or that it can be read again. A repeated reason is not logged again. */
  noteUnread(id: ModelId, problem: TritonError | undefined): void {
    const key = keyOf(id);
    if (problem === undefined) this.#unread.delete(key);
    else if (this.#unread.get(key) !== statusText(problem)) {
      this.#unread.set(key, statusText(problem));
      this.log.error(`Poll failed for model directory '${id.name}': ${problem.message}`);
    }
  }

  /** @returns the forgotten model */
  forget(key: ModelKey): PolledModel | undefined {
    const model = this.models.get(key);
    for (const map of [this.models, this.invalid, this.failed, this.#unread]) map.delete(key);
    return model;
  }
}
