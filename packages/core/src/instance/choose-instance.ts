import { TritonError } from "@tritonjs/protocol";
import type { Payload } from "../batch/payload.js";
import type { ModelInstance } from "./model-instance.js";

/**
 * Chooses the instance for the next payload: the first of those with the most room. If none has room and there is at
 * most one instance, a busy one may get a payload that cannot grow any more. It starts this payload directly after its
 * current one, so it is not idle until this thread learns that it has finished.
 *
 * @returns undefined if the payload has to wait
 */
export function chooseInstance(
  serving: readonly ModelInstance[],
  payload: Payload,
): ModelInstance | undefined {
  let idlest: ModelInstance | undefined;
  for (const instance of serving) {
    if (instance.room > (idlest?.room ?? 0)) idlest = instance;
  }
  if (idlest !== undefined) return idlest;
  const only = serving.length === 1 ? serving[0]! : undefined;
  return payload.complete && only?.takesAhead === true ? only : undefined;
}

/** Returns the reason why no instance can run; undefined while at least one can. */
export function whyNoneCanRun(
  instances: readonly ModelInstance[],
  serving: readonly ModelInstance[],
): TritonError | undefined {
  let reason: TritonError | undefined;
  for (const instance of serving) {
    if (instance.unhealthyReason === undefined) return undefined;
    reason ??= instance.unhealthyReason;
  }
  if (reason !== undefined || instances.length === 0) return reason;
  return new TritonError(
    "UNAVAILABLE",
    "all instances are passive, so the model cannot take requests: set passive: false on one",
    { reason: "ALL_INSTANCES_PASSIVE" },
  );
}
