import { TritonError } from "@tritonjs/protocol";

/** A model that is called by another. */
export interface Callee {
  /** `name/version`. */
  readonly key: string;
  /** False if the call would have to wait for other work of the model. */
  readonly hasRoom: boolean;
  /** False if a busy instance holds a resource that the call would wait for. */
  readonly mayCallItself: boolean;
}

/** Most occurrences of one model in a chain of calls, which stops endless recursion. */
const MAX_LEVELS = 32;

/**
 * Graph of the models that wait for each other. An instance that waits for another model does nothing else, so models
 * that wait for each other in a circle would wait forever. A call that would close such a circle is refused, unless
 * another instance is idle.
 */
export class CallGraph {
  /** Calls in flight: caller, then callee. */
  readonly #underWay = new Map<string, Map<string, number>>();

  /**
   * Records a call.
   *
   * @param callers models that work on the request, outermost first
   * @returns function to call when the call is over
   * @throws TritonError INTERNAL if the model already works on the request and has no room, UNAVAILABLE if it has no
   * room and waits for the caller itself.
   */
  enter(callers: readonly string[], { key, hasRoom, mayCallItself }: Callee): () => void {
    const levels = callers.filter((caller) => caller === key).length;
    if (levels > 0 && !(hasRoom && mayCallItself && levels < MAX_LEVELS)) {
      const path = [...callers, key].map((model) => `'${model}'`).join(" -> ");
      throw new TritonError("INTERNAL", `circular call of models, which could wait forever: ${path}`, {
        reason: "CIRCULAR_CALL",
      });
    }
    const caller = callers.at(-1)!;
    if (!hasRoom && this.#waits(key, caller, new Set())) {
      throw new TritonError(
        "UNAVAILABLE",
        `model '${caller}' cannot call model '${key}', which is busy and waits for '${caller}': try again, or add instances`,
        { reason: "MODEL_BUSY" },
      );
    }
    this.#count(caller, key, 1);
    return () => this.#count(caller, key, -1);
  }

  #waits(from: string, target: string, seen: Set<string>): boolean {
    if (from === target) return true;
    seen.add(from);
    const callees = [...(this.#underWay.get(from)?.keys() ?? [])];
    return callees.some((callee) => !seen.has(callee) && this.#waits(callee, target, seen));
  }

  #count(caller: string, callee: string, change: number): void {
    const callees = this.#underWay.get(caller) ?? new Map<string, number>();
    const count = (callees.get(callee) ?? 0) + change;
    if (count > 0) callees.set(callee, count);
    else callees.delete(callee);
    if (callees.size > 0) this.#underWay.set(caller, callees);
    else this.#underWay.delete(caller);
  }
}
