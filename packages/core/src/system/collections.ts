/** A member of a {@link LinkedList}. */
export interface Linked<T> {
  next: T | undefined;
  previous: T | undefined;
}

/**
 * A list linked through its members: one joins without an allocation, and leaves in O(1) from any position. A `Set` that
 * lives long would keep removed entries. Each table that V8 outgrows holds its entries and the next table, and an old
 * table is seldom collected.
 */
export class LinkedList<T extends Linked<T>> {
  head: T | undefined = undefined;
  tail: T | undefined = undefined;
  size = 0;

  push(member: T): void {
    member.previous = this.tail;
    member.next = undefined;
    if (this.tail === undefined) this.head = member;
    else this.tail.next = member;
    this.tail = member;
    this.size++;
  }

  /** Removes a member. Returns false, without effect, for one that is in no list. */
  remove(member: T): boolean {
    const { previous, next } = member;
    if (previous !== undefined) previous.next = next;
    else if (this.head === member) this.head = next;
    else return false;
    if (next === undefined) this.tail = previous;
    else next.previous = previous;
    member.previous = undefined;
    member.next = undefined;
    this.size--;
    return true;
  }

  /** The members in order. */
  all(): T[] {
    const all: T[] = [];
    for (let one = this.head; one !== undefined; one = one.next) all.push(one);
    return all;
  }
}

/** The value of a key, which is made when the map has none. */
export function getOrAdd<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
