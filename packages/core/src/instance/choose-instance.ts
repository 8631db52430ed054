import type { Payload } from "../batch/payload.js";
import type { ModelInstance } from "./model-instance.js";

/**
 * The instance that takes the next payload: the first of those with the most room. When none has any, and there is no
 * more than one, it may have a payload that does not grow any more, and begins with it as soon as it is done with the one
 * at hand: until this thread hears of that, it would stand idle.
 *
 * @returns undefined when the payload has to wait
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
