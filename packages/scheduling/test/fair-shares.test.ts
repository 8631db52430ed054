import { InferenceRequest } from "@tritonjs/core/internal";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../test/support/seeded-random.js";
import { FairShares } from "../src/fair-shares.js";
import { type Urgency, urgencyOf } from "../src/urgency.js";

/** What the queue keeps with a request that arrives. */
function placed(): Urgency {
  return { due: Number.POSITIVE_INFINITY, order: 0, ticket: 0, share: undefined, charge: 0 };
}

function request(caller: string, rows = 1): InferenceRequest {
  const one = new InferenceRequest("m", { inputs: new Map(), caller });
  one.batchSize = rows;
  one.extra = placed();
  return one;
}

/** Adds a request of each name, and returns the names in the order of shares. */
function order(shares: FairShares, names: readonly string[]): string[] {
  const all = names.map((name) => {
    const one = request(name);
    shares.place(one);
    shares.joined(one);
    return one;
  });
  return all.sort((a, b) => urgencyOf(a).order - urgencyOf(b).order).map(({ caller }) => caller);
}

describe("fair shares", () => {
  it("let a caller that comes later go between the requests of one that sent many", () => {
    const shares = new FairShares({ by: "caller" }, 1);
    const names = order(shares, ["a", "a", "a", "b", "b"]);
    expect(names).toEqual(["a", "b", "a", "b", "a"]);
  });

  it("give a caller with twice the weight twice the turns", () => {
    const shares = new FairShares({ by: "caller", weights: { b: 2 } }, 1);
    const names = order(shares, [...Array(9).fill("a"), ...Array(9).fill("b")]);
    expect(names.slice(0, 9).filter((name) => name === "b")).toHaveLength(6);
  });

  it("charge by rows, or by the cost of a request where the model says it", () => {
    const shares = new FairShares({ by: "caller" }, 1);
    const large = request("a", 8);
    shares.place(large);
    shares.joined(large);
    const costly = request("b");
    Object.assign(urgencyOf(costly), { cost: 20 });
    shares.place(costly);
    shares.joined(costly);
    expect([
      urgencyOf(large).share!.account.finish - urgencyOf(large).order,
      urgencyOf(costly).share!.account.finish - urgencyOf(costly).order,
    ]).toEqual([8, 20]);
  });

  it("give the cost of a request that leaves without having run back", () => {
    const shares = new FairShares({ by: "caller" }, 1);
    const [first, second] = [request("a"), request("a")];
    for (const one of [first, second]) {
      shares.place(one);
      shares.joined(one);
    }
    const before = urgencyOf(second).share!.account.finish;
    shares.left(second);
    expect(urgencyOf(second).share!.account.finish).toBe(before - 1);
  });

  it("charge a function's name, a header or a parameter", () => {
    const byPriority = new FairShares({ by: ({ priority }) => `p${priority}` }, 1);
    const one = request("x");
    one.priority = 3;
    byPriority.place(one);
    expect(urgencyOf(one).share!.account.name).toBe("p3");
    const byHeader = new FairShares({ by: "tenant" }, 1);
    const named = request("header");
    byHeader.place(named);
    const parameter = new InferenceRequest("m", { inputs: new Map(), parameters: { tenant: "t" } });
    parameter.extra = placed();
    byHeader.place(parameter);
    expect([urgencyOf(named).share!.account.name, urgencyOf(parameter).share!.account.name]).toEqual([
      "header",
      "t",
    ]);
  });

  it("share the time by the weights whatever callers send, and remember a bounded number of callers", () => {
    const random = new SeededRandom(7);
    const weights = { a: 1, b: 3, c: 6 };
    const shares = new FairShares({ by: "caller", weights }, 4);
    const queue: InferenceRequest[] = [];
    const served = { a: 0, b: 0, c: 0 };
    for (let turn = 0; turn < 20_000; turn++) {
      for (const name of ["a", "b", "c"] as const) {
        while (queue.filter(({ caller }) => caller === name).length < 8) {
          const one = request(name, 1 + random.below(4));
          shares.place(one);
          shares.joined(one);
          queue.push(one);
        }
      }
      queue.sort((x, y) => urgencyOf(x).order - urgencyOf(y).order);
      const next = queue.shift()!;
      shares.ran(next);
      served[next.caller as keyof typeof served] += next.rows;
    }
    const sum = served.a + served.b + served.c;
    expect(served.a / sum).toBeCloseTo(0.1, 2);
    expect(served.b / sum).toBeCloseTo(0.3, 2);
    expect(served.c / sum).toBeCloseTo(0.6, 2);
    for (let i = 0; i < 10_000; i++) {
      const one = request(`caller ${i}`);
      shares.place(one);
      shares.joined(one);
      shares.ran(one);
      const next = request("a");
      shares.place(next);
      shares.joined(next);
      shares.ran(next);
    }
    expect(shares.size).toBeLessThan(1100);
  });
});
