import { type ModelConfig, type ModelEnsembleStep, TritonError } from "@tritonjs/protocol";
import { validateConfig } from "../config/validation/validate-config.js";
import { checkMembers } from "../config/validation/validate-members.js";

import type { ModelState } from "./registered-version.js";

/** A model as the ensembles that it is part of see it. */
export interface MemberView {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly state: ModelState;
  readonly reason: string;
}

/** The model of a step: one that is ready before one that is loading, before any other; undefined for none. */
export type MemberOf = (
  step: Pick<ModelEnsembleStep, "modelName" | "modelVersion"> & Partial<ModelEnsembleStep>,
) => MemberView | undefined;

/** What the members of an ensemble make of its state. */
export interface EnsembleState {
  readonly state: ModelState;
  readonly reason: string;
}

/** Follows the members of an ensemble: it is ready while all of them are, and they fit. */
export class EnsembleMembers {
  #ready = new Pending();

  constructor(private readonly config: ModelConfig) {}

  /** Resolves when all members are ready; rejects when one failed to load, or does not fit. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Looks at the members again. */
  look(memberOf: MemberOf): EnsembleState {
    const { config } = this;
    const steps = config.ensembleScheduling!.step;
    const missing = steps.flatMap((step) => missingMember(config.name, step, memberOf(step)));
    if (missing.length > 0) {
      const failed = steps.map(memberOf).some((member) => member?.state === "UNAVAILABLE");
      return this.#unavailable("UNAVAILABLE", missing, failed);
    }
    if (steps.some((step) => memberOf(step)!.state === "LOADING")) return this.#waiting("LOADING", "");
    const { problems, decoupled } = checkMembers(config, (step) => memberOf(step)!.config);
    config.modelTransactionPolicy = { decoupled };
    const all = [...problems, ...validateConfig(config)];
    if (all.length > 0) return this.#unavailable("INVALID_ARG", all, true);
    this.#ready.resolve();
    return { state: "READY", reason: "" };
  }

  /** The ensemble is unloaded: nobody need wait for it. */
  close(): void {
    this.#ready.reject(
      new TritonError("UNAVAILABLE", `ensemble '${this.config.name}' was unloaded`, {
        reason: "MODEL_STOPPED",
      }),
    );
  }

  #waiting(state: ModelState, reason: string): EnsembleState {
    if (this.#ready.settled) this.#ready = new Pending();
    return { state, reason };
  }

  #unavailable(
    code: "UNAVAILABLE" | "INVALID_ARG",
    problems: readonly string[],
    failed: boolean,
  ): EnsembleState {
    const text = [...new Set(problems)].join("; ");
    const state = this.#waiting("UNAVAILABLE", text);
    const reason = code === "UNAVAILABLE" ? "ENSEMBLE_MEMBER_NOT_READY" : "INVALID_CONFIG";
    // A member that is missing may still come.
    if (failed) this.#ready.reject(new TritonError(code, text, { reason }));
    return state;
  }
}

function missingMember(ensemble: string, step: ModelEnsembleStep, member: MemberView | undefined): string[] {
  const depends = `ensemble '${ensemble}' depends on '${step.modelName}'`;
  if (member?.state === "READY" || member?.state === "LOADING") return [];
  if (member?.state === "UNAVAILABLE") {
    return [
      `${depends} which has no loaded version. Model '${step.modelName}' loading failed with error: ${member.reason}`,
    ];
  }
  return step.modelVersion === -1
    ? [`${depends} which has no loaded version`]
    : [`${depends} whose required version ${step.modelVersion} is not loaded`];
}

/** A promise to be settled from outside. */
class Pending {
  readonly promise: Promise<void>;
  settled = false;
  #resolve = () => {};
  #reject: (error: TritonError) => void = () => {};

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.promise.catch(() => {});
  }

  resolve(): void {
    this.settled = true;
    this.#resolve();
  }

  reject(error: TritonError): void {
    this.settled = true;
    this.#reject(error);
  }
}
