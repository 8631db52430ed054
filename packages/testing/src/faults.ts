import { errorFor } from "@tritonjs/protocol";

/** Faults of a model by name. */
export const FAULT_NAMES = [
  /** Answers later, by `delayMs` on the clock of the server. */
  "late",
  /** The instance dies with the batch that it runs, and starts again after `delayMs`. */
  "crash",
  /** The outputs have a shape that the model does not declare. */
  "wrong-shape",
  /** All floating-point outputs are NaN. */
  "nan",
  /** The model cannot allocate memory for the batch. */
  "out-of-memory",
  /** The stream of a decoupled model fails after `responses` responses. Other models fail without an answer. */
  "cut-stream",
] as const;

export type FaultName = (typeof FAULT_NAMES)[number];

/** How a fault shows. */
export interface FaultOptions {
  /** Milliseconds of `late`, and until an instance that crashed is back. @default 1000 for "late", 0 for "crash" */
  readonly delayMs?: number;
  /** Responses that a cut stream still sends. @default 1 */
  readonly responses?: number;
}

/** A fault of one batch. */
export interface Fault extends FaultOptions {
  readonly name: FaultName;
}

/**
 * The faults of a fake model, which a test turns on and off.
 *
 * @example
 * ```ts
 * const faults = new Faults();
 * const detector = triton.bind({ modelName: "detector", inferFunc: fakeModel({ inputs, outputs, faults }) });
 * faults.next("crash");
 * await detector.inferSample({ image }); // rejects with INTERNAL, as if the worker had died
 * ```
 */
export class Faults {
  #always: Fault | undefined;
  readonly #next: (Fault | undefined)[] = [];

  /** Gives the next batch a fault, after those that were announced before. @throws TritonError INVALID_ARG for an unknown name */
  next(name: FaultName, options: FaultOptions = {}): this {
    this.#next.push(faultOf(name, options));
    return this;
  }

  /** Lets a number of batches pass before the next fault. */
  pass(batches = 1): this {
    for (let i = 0; i < batches; i++) this.#next.push(undefined);
    return this;
  }

  /** Gives all batches a fault, until `clear`. @throws TritonError INVALID_ARG for an unknown name */
  always(name: FaultName, options: FaultOptions = {}): this {
    this.#always = faultOf(name, options);
    return this;
  }

  /** Ends all faults. */
  clear(): void {
    this.#always = undefined;
    this.#next.length = 0;
  }

  /** @internal Takes the fault of a batch. */
  take(): Fault | undefined {
    return this.#next.length > 0 ? this.#next.shift() : this.#always;
  }
}

function faultOf(name: FaultName, options: FaultOptions): Fault {
  if (!FAULT_NAMES.includes(name)) {
    throw errorFor(
      "INVALID_OPTION",
      `fault: expected one of ${FAULT_NAMES.join(", ")}, got '${String(name)}'`,
    );
  }
  return { ...options, name };
}
