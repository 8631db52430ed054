import { describe, expect, test } from "vitest";
import { type Linked, LinkedList } from "../../src/system/collections.js";

interface Member extends Linked<Member> {
  readonly name: string;
}

const member = (name: string): Member => ({ name, next: undefined, previous: undefined });

describe("a linked list", () => {
  test.each([
    [0, ["b", "c"]],
    [1, ["a", "c"]],
    [2, ["a", "b"]],
  ])("does not include member %i any more once it is removed, however often", (removed, left) => {
    const list = new LinkedList<Member>();
    const members = ["a", "b", "c"].map(member);
    for (const one of members) list.push(one);
    expect([list.remove(members[removed]!), list.remove(members[removed]!)]).toEqual([true, false]);
    expect(list.all().map(({ name }) => name)).toEqual(left);
    const last = member("last");
    list.push(last);
    expect(list.all().at(-1)).toBe(last);
    for (const one of [...members, last]) list.remove(one);
    expect([list.size, list.head, list.tail]).toEqual([0, undefined, undefined]);
  });
});
