import { TritonError } from "@tritonjs/protocol";

/** A model as a callee. */
export interface Callee {
  /** `name/version`. */
  readonly key: string;
  /** False while the call would have to wait for other work of the model. */
  readonly hasRoom: boolean;
  /** False when an instance at work holds more than itself, which the call would wait for. */
  readonly mayCallItself: boolean;
}

/** How often a model may stand in one chain of calls: none goes on without an end. */
const MAX_LEVELS = 32;

/**
 * Which models wait for which. An instance that waits for another model does nothing else: models that wait for each
 * other in a circle would wait forever, so the call that would close the circle is refused, unless another instance is
 * idle.
 */
export class CallGraph {
  /** Calls under way: caller, then callee. */
  readonly #underWay = new Map<string, Map<string, number>>();

  /**
   * Notes a call.
   *
   * @param callers models that are at work on the request, outermost first
   * @returns what to call when the call is over
   * @throws TritonError INTERNAL when the model is at work on the request already and has no room, UNAVAILABLE when it
   * has no room and waits for the caller itself.
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
