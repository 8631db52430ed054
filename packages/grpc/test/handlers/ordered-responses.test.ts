import { describe, expect, test } from "vitest";
import { OrderedStreamResponses } from "../../src/infer/model-stream-infer.js";

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
