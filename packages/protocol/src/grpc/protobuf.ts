import runtime from "protobufjs/minimal.js";

/** A reader of protobufjs. The generated code takes one of this package. */
export interface Reader {
  readonly pos: number;
}

/** A writer of protobufjs. The generated code takes one of this package. */
export interface Writer {
  finish(): Uint8Array;
}

/** Options of the conversion of a message to a plain object. */
export interface IConversionOptions {
  /** Type of 64-bit integers; a `Number` if not given. */
  readonly longs?: StringConstructor | NumberConstructor;
  /** `String` gives the names of enum values; numbers if not given. */
  readonly enums?: StringConstructor;
  /** Type of bytes; a `Uint8Array` if not given. */
  readonly bytes?: StringConstructor | ArrayConstructor;
  /** Fields that are absent get their default values. @default false */
  readonly defaults?: boolean;
  /** Lists that are absent become empty lists. @default false */
  readonly arrays?: boolean;
  /** Maps that are absent become empty objects. @default false */
  readonly objects?: boolean;
  /** Adds a property for each `oneof`: the name of its field. @default false */
  readonly oneofs?: boolean;
}

/** The classes that the reader and the writer of this package extend. */
interface Runtime {
  readonly BufferReader: unknown;
  readonly BufferWriter: unknown;
}

/**
 * The runtime of the generated code: protobufjs, as part of this package. `@grpc/grpc-js` needs an older major version
 * of protobufjs, and a dependency would install a second one.
 */
export default runtime as Runtime;
