import { errorFor, type ModelConfig, type ModelEnsembleStep, TritonError } from "@tritonjs/protocol";
import { checkMembers } from "../config/ensemble.js";
import { validateConfig } from "../config/resolve-config.js";
import type { InputCheck } from "../instance/backend.js";
import { inEnsemble } from "../scheduler/ensemble/ensemble-steps.js";
import type { ModelState } from "./version-status.js";

/** A model as seen by the ensembles that it is part of. */
interface MemberView {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly state: ModelState;
  readonly reason: string;
  readonly checkInput?: InputCheck | undefined;
}

/**
 * Looks up the model of a step. A ready version comes before a loading one, and that before any other; undefined if
 * there is none.
 */
export type MemberOf = (
  step: Pick<ModelEnsembleStep, "modelName" | "modelVersion"> & Partial<ModelEnsembleStep>,
) => MemberView | undefined;

interface EnsembleState {
  readonly state: ModelState;
  readonly reason: string;
  /** True if all members are ready, but do not fit. */
  readonly unfit?: boolean;
}

/** Follows the members of an ensemble, which is ready while all of them are ready and fit. */
export class EnsembleMembers {
  /** Asks the steps that read an input of the ensemble. Undefined if none of them has limits. */
  checkInput: InputCheck | undefined;
  #ready = new Pending();

  constructor(private readonly config: ModelConfig) {}

  /** Resolves when all members are ready. Rejects if one failed to load or does not fit. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

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
    this.checkInput = checkBySteps(config, memberOf);
    this.#ready.resolve();
    return { state: "READY", reason: "" };
  }

  /** Ends all waiting, because the ensemble is unloaded. */
  close(): void {
    this.#ready.reject(errorFor("MODEL_STOPPED", `ensemble '${this.config.name}' was unloaded`));
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
    // A missing member may still be added.
    if (failed) this.#ready.reject(new TritonError(code, text, { reason }));
    return { ...state, unfit: code === "INVALID_ARG" };
  }
}

function checkBySteps(
  { name: ensemble, ...config }: ModelConfig,
  memberOf: MemberOf,
): InputCheck | undefined {
  const readers = config.ensembleScheduling!.step.flatMap((step) => {
    const member = memberOf(step)!;
    if (member.checkInput === undefined) return [];
    return Object.entries(step.inputMap).map(([input, tensor]) => ({ tensor, input, member }));
  });
  const inputs = new Set(config.input.map(({ name }) => name));
  if (!readers.some(({ tensor }) => inputs.has(tensor))) return undefined;
  return (name, shape) => {
    for (const { tensor, input, member } of readers) {
      if (tensor !== name) continue;
      try {
        member.checkInput?.(input, shape);
      } catch (error) {
        throw inEnsemble(ensemble, TritonError.from(error));
      }
    }
  };
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

export class Pending {
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

/**
 * Finds the path from an ensemble over its members back to itself, which requests would follow forever; undefined if
 * there is none.
 *
 * @param memberOf looks members up, and the ensemble itself too
 */
export function ensembleCycle(config: ModelConfig, memberOf: MemberOf): readonly string[] | undefined {
  /** Ensembles on the way, each with the one before it. */
  const found = new Map<ModelConfig, ModelConfig | undefined>([[config, undefined]]);
  // A map also visits what is added meanwhile.
  for (const from of found.keys()) {
    for (const step of from.ensembleScheduling?.step ?? []) {
      const member = memberOf(step)?.config;
      if (member === config) return pathTo(from, found).concat(config.name);
      if (member !== undefined && !found.has(member)) found.set(member, from);
    }
  }
  return undefined;
}

function pathTo(last: ModelConfig, before: ReadonlyMap<ModelConfig, ModelConfig | undefined>): string[] {
  const path: string[] = [];
  for (let one: ModelConfig | undefined = last; one !== undefined; one = before.get(one))
    path.unshift(one.name);
  return path;
}
