import protobuf from "#protobuf";

/** A 64-bit integer as protobufjs writes it, besides numbers. */
interface Halves {
  low: number;
  high: number;
}
type Wide = number | bigint | Halves;

/** The part of protobufjs' writer that the writer below uses, without its 64-bit types. */
interface BaseWriter {
  uint64(value: number | Halves): this;
  uint64s(values: (number | Halves)[]): this;
  /** Returns the written bytes; with `shared` as a view of the writer's buffer. */
  finish(shared: boolean): Buffer;
}
const BaseWriter = protobuf.BufferWriter as unknown as new () => BaseWriter;

/** Writes protobuf; 64-bit integers may be bigints. */
export class MessageWriter extends BaseWriter {
  override uint64(value: Wide): this {
    return super.uint64(halves(value));
  }

  override uint64s(values: Wide[]): this {
    return super.uint64s(values.map(halves));
  }

  int64(value: Wide): this {
    return this.uint64(value);
  }

  int64s(values: Wide[]): this {
    return this.uint64s(values);
  }
}

function halves(value: Wide): number | Halves {
  if (typeof value !== "bigint") return value;
  return { low: Number(BigInt.asIntN(32, value)), high: Number(BigInt.asIntN(32, value >> 32n)) };
}
