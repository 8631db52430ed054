import { describe, expect, it } from "vitest";
import { LoopTurns } from "../../src/exchange/loop-turns.js";
import { ClientGone } from "../../src/exchange/request.js";

/** An event loop on which each step takes a millisecond, and whose turns the test makes. */
function openLoop() {
  let now = 0;
  let deferred: (() => void)[] = [];
  const turns = new LoopTurns({ now: () => now, defer: (run) => void deferred.push(run) });
  const done: string[] = [];
  /** Work of some steps, which notes each. */
  const work = (name: string, steps: number) =>
    function* (): Generator<void, string> {
      for (let left = steps; left > 0; left--) {
        now++;
        done.push(name);
        if (left > 1) yield;
      }
      return name;
    };
  const turn = () => {
    done.length = 0;
    const due = deferred;
    deferred = [];
    for (const run of due) run();
    return done.join("");
  };
  return { turns, work, turn, done };
}

const client = { gone: false };

describe("the turns of long documents", () => {
  it("does short work at once", () => {
    const { turns, work } = openLoop();
    expect(turns.read(client, work("a", 3))).toBe("a");
  });

  it("does five milliseconds of work in each turn of the event loop", async () => {
    const { turns, work, turn, done } = openLoop();
    const result = turns.read(client, work("a", 12));
    expect(done).toHaveLength(5);
    expect([turn(), turn(), turn()]).toEqual(["aaaaa", "aa", ""]);
    await expect(result).resolves.toBe("a");
  });

  it("reads one document after the other, within the same five milliseconds", async () => {
    const { turns, work, turn } = openLoop();
    const all = [
      turns.read(client, work("a", 7)),
      turns.read(client, work("b", 2)),
      turns.read(client, work("c", 2)),
    ];
    expect([turn(), turn()]).toEqual(["aabbc", "c"]);
    await expect(Promise.all(all)).resolves.toEqual(["a", "b", "c"]);
  });

  it("shares the turn with the work that was done at once", () => {
    const { turns, work, turn, done } = openLoop();
    turns.read(client, work("a", 4));
    turns.read(client, work("b", 4));
    expect(done.join("")).toBe("aaaab");
    expect(turn()).toBe("bbb");
  });

  it("writes answers before it reads further requests", () => {
    const { turns, work, turn } = openLoop();
    turns.read(client, work("r", 8));
    turns.write(client, work("w", 4));
    expect([turn(), turn()]).toEqual(["wwwwr", "rr"]);
  });

  it("drops the work of a client that has left", async () => {
    const { turns, work, turn } = openLoop();
    const leaving = { gone: false };
    const left = turns.read(leaving, work("a", 8));
    const next = turns.read(client, work("b", 2));
    leaving.gone = true;
    expect(turn()).toBe("bb");
    await expect(left).rejects.toBeInstanceOf(ClientGone);
    await expect(next).resolves.toBe("b");
  });

  it("passes the error of a step on, and goes on with the next work", async () => {
    const { turns, work, turn } = openLoop();
    turns.read(client, work("a", 6));
    // biome-ignore lint/correctness/useYield: it fails in its first step.
    const failing = turns.read(client, function* () {
      throw new Error("broken");
    });
    const next = turns.read(client, work("b", 1));
    expect(turn()).toBe("ab");
    await expect(failing).rejects.toThrow("broken");
    await expect(next).resolves.toBe("b");
    expect(() =>
      openLoop().turns.read(client, () => {
        throw new Error("empty");
      }),
    ).toThrow("empty");
  });
});
