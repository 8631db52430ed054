import { setFlagsFromString } from "node:v8";
import { describe, expect, it } from "vitest";
import { withSignal } from "../../src/instance/callback-context.js";

setFlagsFromString("--allow-natives-syntax");
const haveSameHiddenClass = new Function("a", "b", "return %HaveSameMap(a, b)") as (
  a: object,
  b: object,
) => boolean;

function source() {
  const controller = new AbortController();
  let asked = 0;
  return {
    controller,
    get asked() {
      return asked;
    },
    get signal() {
      asked++;
      return controller.signal;
    },
  };
}

describe("withSignal", () => {
  it("returns the object's fields and the signal of its source", () => {
    const from = source();
    const context = withSignal({ name: "m" }, from);
    expect(context.name).toBe("m");
    expect(context.signal).toBe(from.controller.signal);
  });

  it("requests the signal only when it is read", () => {
    const from = source();
    const context = withSignal({ name: "m" }, from);
    expect(from.asked).toBe(0);
    const { signal } = context;
    expect([signal.aborted, from.asked]).toEqual([false, 1]);
  });

  it("shares its hidden class with others, so that nothing keeps its source alive", () => {
    const [one, other] = [withSignal({ name: "a" }, source()), withSignal({ name: "b" }, source())];
    expect(haveSameHiddenClass(one, other)).toBe(true);
  });
});
