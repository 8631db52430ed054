import type { RequestHandle } from "@tritonjs/core/frontend";
import { describe, expect, test } from "vitest";
import { OpenRequests, OrderedStreamResponses } from "../../src/infer/model-stream-infer.js";

const request = (): RequestHandle => ({
  id: "",
  settled: false,
  cancel: () => true,
  askToStop: () => false,
  pause() {},
  resume() {},
});

describe("the open requests of a stream", () => {
  test("are listed in the order in which they were added, but for those that no model has taken", () => {
    const open = new OpenRequests();
    expect([open.isEmpty, open.sent()]).toEqual([true, []]);
    const entries = [open.add(), open.add(), open.add()];
    const sent = [request(), request()];
    entries[2]!.sent = sent[1];
    entries[0]!.sent = sent[0];
    expect(open.isEmpty).toBe(false);
    expect(open.sent()).toEqual(sent);
  });

  test.each([
    [0, [1, 2]],
    [1, [0, 2]],
    [2, [0, 1]],
  ])("do not include entry %i any more once it is deleted, however often", (deleted, left) => {
    const open = new OpenRequests();
    const entries = Array.from({ length: 3 }, () => Object.assign(open.add(), { sent: request() }));
    open.delete(entries[deleted]!);
    open.delete(entries[deleted]!);
    expect(open.sent()).toEqual(left.map((i) => entries[i]!.sent));
    const last = open.add();
    last.sent = request();
    expect(open.sent().at(-1)).toBe(last.sent);
    for (const entry of [...entries, last]) open.delete(entry);
    expect(open.isEmpty).toBe(true);
  });
});

describe("responses in the order of their requests", () => {
  test("go out when all places before theirs are closed, also if a place opens while they do", () => {
    const written: string[] = [];
    const ordered = new OrderedStreamResponses<string>(
      (message) => {
        written.push(message);
        if (message !== "a") return;
        const late = ordered.open();
        late.add("late");
        late.close();
      },
      (error) => written.push(error.message),
    );
    const [a, b] = [ordered.open(), ordered.open()];
    b.add("b");
    b.close();
    a.add("a");
    expect(written).toEqual([]);
    a.close();
    expect(written).toEqual(["a", "b", "late"]);
    const after = ordered.open();
    after.add("after");
    after.close();
    expect(written.at(-1)).toBe("after");
  });
});
