import { FileMemory } from "@tritonjs/protocol";
import protobuf from "protobufjs/light.js";

/**
 * Makes types of messages.
 *
 * @param name namespace of the types
 * @param schema fields of each message as `name:number:type`, with `*` for a list and `%` for a map from strings
 * @param packed names of the lists that are written as one field
 */
export function messageRoot(
  name: string,
  schema: Readonly<Record<string, string>>,
  packed: RegExp,
): protobuf.Root {
  const messages = Object.entries(schema).map(([message, text]) => {
    const fields = text.split(" ").filter((field) => field !== "");
    const entries = fields.map((field) => fieldOf(field, packed));
    // Each type says its edition: a type without one drops fields that are written with their default, such as `false`.
    return [message, { edition: "proto2", fields: Object.fromEntries(entries) }];
  });
  return protobuf.Root.fromJSON({
    nested: { [name]: { nested: Object.fromEntries(messages) } },
  } as protobuf.INamespace);
}

function fieldOf(text: string, packed: RegExp): [string, object] {
  const [field, id, type] = text.split(":") as [string, string, string];
  const kind = { type: type.replace(/[*%]/, ""), id: Number(id) };
  if (type.endsWith("*"))
    return [field, { ...kind, rule: "repeated", options: { packed: packed.test(field) } }];
  return [field, type.endsWith("%") ? { ...kind, keyType: "string" } : kind];
}

type Numbers = unknown[];

const BaseReader = protobuf.BufferReader as unknown as new (
  bytes: Buffer,
) => {
  buf: Uint8Array;
  pos: number;
  len: number;
  tag(): number;
  size(): number;
};

/** Readers of lists of numbers, and the bytes that a number takes at least. */
const LISTS: Readonly<Record<string, number>> = {
  ...{ uint32s: 1, int32s: 1, sint32s: 1, bools: 1, uint64s: 1, int64s: 1, sint64s: 1 },
  ...{ fixed32s: 4, sfixed32s: 4, floats: 4, fixed64s: 8, sfixed64s: 8, doubles: 8 },
};

/** Reads a message, and counts what is made of it before it is made. */
export class BoundedReader extends BaseReader {
  readonly #memory: FileMemory;

  /** @param what the file, for errors */
  constructor(bytes: Uint8Array, what: string) {
    super(Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    this.#memory = new FileMemory(what);
  }

  override tag(): number {
    this.#memory.countParts();
    return super.tag();
  }

  /** @throws TritonError INVALID_ARG for a list of too many numbers at the place of its length */
  countList(bytesOfNumber: number): void {
    const { pos } = this;
    this.#memory.countNumbers(this.size() / bytesOfNumber);
    this.pos = pos;
  }
}

/** A reader of a message. @param what the file, for errors */
export function boundedReader(bytes: Uint8Array, what: string): protobuf.Reader {
  return new BoundedReader(bytes, what) as unknown as protobuf.Reader;
}

const lists = BaseReader.prototype as unknown as Record<string, (array: Numbers) => Numbers>;
for (const [name, bytes] of Object.entries(LISTS)) {
  Object.defineProperty(BoundedReader.prototype, name, {
    value(this: BoundedReader, array: Numbers) {
      this.countList(bytes);
      return lists[name]!.call(this, array);
    },
  });
}
