import { describe, expect, it } from "vitest";
import { CallGraph } from "../../src/model/model-server.js";
import { thrownText } from "../support/requests.js";

const busy = (key: string) => ({ key, hasRoom: false, mayCallItself: true });
const idle = (key: string) => ({ key, hasRoom: true, mayCallItself: true });

describe("the call graph of models", () => {
  it("rejects a call to a busy model that is already in the chain of calls", () => {
    const graph = new CallGraph();
    const refusal = "INTERNAL circular call of models, which could wait forever: 'a/1' -> 'b/1' -> 'a/1'";
    expect(thrownText(() => graph.enter(["a/1", "b/1"], busy("a/1")))).toBe(refusal);
    graph.enter(["a/1", "b/1"], idle("a/1"))();
    const slotted = { ...idle("a/1"), mayCallItself: false };
    expect(thrownText(() => graph.enter(["a/1", "b/1"], slotted))).toBe(refusal);
  });

  it("rejects endless recursion", () => {
    const graph = new CallGraph();
    graph.enter(Array(31).fill("a/1"), idle("a/1"));
    expect(thrownText(() => graph.enter(Array(32).fill("a/1"), idle("a/1")))).toContain(
      "circular call of models",
    );
  });

  it("rejects waiting for a busy model that waits for the caller", () => {
    const graph = new CallGraph();
    graph.enter(["a/1"], busy("b/1"));
    const leave = graph.enter(["b/1"], busy("c/1"));
    expect(thrownText(() => graph.enter(["c/1"], busy("a/1")))).toBe(
      "UNAVAILABLE model 'c/1' cannot call model 'a/1', which is busy and waits for 'c/1': try again, or add instances",
    );
    graph.enter(["c/1"], idle("a/1"))();
    leave();
    expect(thrownText(() => graph.enter(["c/1"], busy("a/1")))).toBe("nothing was thrown");
  });
});
