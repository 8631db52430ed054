/*
 * Writes SavedModels and frozen graphs as TensorFlow writes them: protobuf messages, and a checkpoint whose index is a
 * table in LevelDB's format.
 */

type Bytes = Uint8Array;

const text = new TextEncoder();
const join = (parts: readonly Bytes[]): Bytes => new Uint8Array(Buffer.concat(parts));

function varint(value: number): Bytes {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Uint8Array.from([...bytes, Number(rest)]);
}

/** A field of a message: a number, a text, bytes, or a list of any of them. */
function field(id: number, value: number | boolean | string | Bytes | readonly Bytes[] | undefined): Bytes {
  if (value === undefined) return new Uint8Array();
  if (Array.isArray(value)) return join((value as readonly Bytes[]).map((one) => field(id, one)));
  if (typeof value === "number" || typeof value === "boolean")
    return join([varint(id * 8), varint(Number(value))]);
  const bytes = typeof value === "string" ? text.encode(value) : (value as Bytes);
  return join([varint(id * 8 + 2), varint(bytes.byteLength), bytes]);
}

function floatField(id: number, value: number): Bytes {
  return join([varint(id * 8 + 5), new Uint8Array(Float32Array.of(value).buffer)]);
}

const entries = <V>(id: number, map: Readonly<Record<string, V>>, write: (value: V) => Bytes): Bytes =>
  join(Object.entries(map).map(([key, value]) => field(id, join([field(1, key), field(2, write(value))]))));

/** TensorFlow's numbers of types. */
export const DT = {
  FLOAT: 1,
  DOUBLE: 2,
  INT32: 3,
  UINT8: 4,
  STRING: 7,
  INT64: 9,
  BOOL: 10,
  RESOURCE: 20,
  VARIANT: 21,
} as const;

export interface TensorFile {
  readonly dtype: number;
  readonly shape: readonly number[];
  readonly values: Float32Array | Float64Array | Int32Array | BigInt64Array | Uint8Array | readonly string[];
}

export const floats = (shape: readonly number[], values: readonly number[]): TensorFile => ({
  dtype: DT.FLOAT,
  shape,
  values: Float32Array.from(values),
});
export const int32 = (value: number): TensorFile => ({
  dtype: DT.INT32,
  shape: [],
  values: Int32Array.of(value),
});

const shapeOf = (dims: readonly number[]): Bytes =>
  field(
    2,
    dims.map((size) => field(1, size)),
  );

function tensorOf({ dtype, shape, values }: TensorFile): Bytes {
  const content = ArrayBuffer.isView(values)
    ? field(4, new Uint8Array(values.buffer, values.byteOffset, values.byteLength))
    : field(
        8,
        (values as readonly string[]).map((one) => text.encode(one)),
      );
  return join([field(1, dtype), field(2, shapeOf(shape)), content]);
}

export type Attribute =
  | { readonly type: number }
  | { readonly types: readonly number[] }
  | { readonly b: boolean }
  | { readonly i: number }
  | { readonly f: number }
  | { readonly s: string }
  | { readonly func: string }
  | { readonly ints: readonly number[] }
  | { readonly strings: readonly string[] }
  | { readonly shape: readonly number[] | "unknown" }
  | { readonly tensor: TensorFile };

function attributeOf(attribute: Attribute): Bytes {
  if ("type" in attribute) return field(6, attribute.type);
  if ("types" in attribute) return field(1, field(6, join(attribute.types.map(varint))));
  if ("i" in attribute) return field(3, attribute.i);
  if ("strings" in attribute) {
    return field(
      1,
      field(
        2,
        attribute.strings.map((one) => text.encode(one)),
      ),
    );
  }
  if ("b" in attribute) return field(5, attribute.b);
  if ("f" in attribute) return floatField(4, attribute.f);
  if ("s" in attribute) return field(2, attribute.s);
  if ("func" in attribute) return field(10, field(1, attribute.func));
  if ("ints" in attribute) return field(1, field(3, join(attribute.ints.map(varint))));
  if ("shape" in attribute)
    return field(7, attribute.shape === "unknown" ? field(3, true) : shapeOf(attribute.shape));
  return field(8, tensorOf(attribute.tensor));
}

export interface NodeFile {
  readonly name: string;
  readonly op: string;
  readonly input?: readonly string[];
  readonly attr?: Readonly<Record<string, Attribute>>;
}

export const node = (
  name: string,
  op: string,
  input: readonly string[] = [],
  attr: Readonly<Record<string, Attribute>> = {},
): NodeFile => ({ name, op, input, attr });

export const constant = (name: string, tensor: TensorFile): NodeFile =>
  node(name, "Const", [], { dtype: { type: tensor.dtype }, value: { tensor } });

const nodeOf = ({ name, op, input = [], attr = {} }: NodeFile): Bytes =>
  join([
    field(1, name),
    field(2, op),
    field(
      3,
      input.map((one) => text.encode(one)),
    ),
    entries(5, attr, attributeOf),
  ]);

export interface FunctionFile {
  readonly name: string;
  /** Types by the names of the arguments. */
  readonly inputs: Readonly<Record<string, number>>;
  readonly nodes: readonly NodeFile[];
  /** Results by the names of the outputs. */
  readonly outputs: Readonly<Record<string, string>>;
}

function functionOf({ name, inputs, nodes, outputs }: FunctionFile): Bytes {
  const argument = ([one, type]: readonly [string, number]) => join([field(1, one), field(3, type)]);
  const signature = join([
    field(1, name),
    field(2, Object.entries(inputs).map(argument)),
    field(
      3,
      Object.keys(outputs).map((one) => argument([one, DT.FLOAT])),
    ),
  ]);
  return join([
    field(1, signature),
    field(3, nodes.map(nodeOf)),
    entries(4, outputs, (result) => text.encode(result)),
  ]);
}

interface GraphFile {
  readonly nodes: readonly NodeFile[];
  readonly functions?: readonly FunctionFile[];
}

/** The bytes of a frozen graph. */
export function graphFile({ nodes, functions = [] }: GraphFile): Bytes {
  return join([field(1, nodes.map(nodeOf)), field(2, field(1, functions.map(functionOf)))]);
}

interface SignatureTensor {
  readonly name: string;
  readonly dtype: number;
  /** Undefined for an unknown rank. */
  readonly shape?: readonly number[];
}

export interface SavedModelFile extends GraphFile {
  readonly signatures: Readonly<
    Record<
      string,
      {
        readonly inputs?: Readonly<Record<string, SignatureTensor>>;
        readonly outputs: Readonly<Record<string, SignatureTensor>>;
      }
    >
  >;
  /** Tensors of the checkpoint by their keys. */
  readonly variables?: Readonly<Record<string, TensorFile>>;
  /** Name of the node that restores the variables. */
  readonly restore?: string;
  /** Whether the index is compressed. */
  readonly compressed?: boolean;
}

const signatureTensor = ({ name, dtype, shape }: SignatureTensor): Bytes =>
  join([field(1, name), field(2, dtype), field(3, shape === undefined ? field(3, true) : shapeOf(shape))]);

/** The files of a SavedModel by their paths in its directory. */
export function savedModelFiles(model: SavedModelFile): Map<string, Bytes> {
  const { signatures, variables = {}, restore, compressed = false } = model;
  const metaGraph = join([
    field(1, field(4, "serve")),
    field(2, graphFile(model)),
    field(3, field(3, restore)),
    entries(5, signatures, ({ inputs = {}, outputs }) =>
      join([entries(1, inputs, signatureTensor), entries(2, outputs, signatureTensor)]),
    ),
  ]);
  const [index, data] = checkpointFiles(variables, compressed);
  return new Map([
    ["saved_model.pb", join([field(1, 1), field(2, metaGraph)])],
    ["variables/variables.index", index],
    ["variables/variables.data-00000-of-00001", data],
  ]);
}

function checkpointFiles(
  variables: Readonly<Record<string, TensorFile>>,
  compressed: boolean,
): [Bytes, Bytes] {
  const data: Bytes[] = [];
  let offset = 0;
  const places: [string, Bytes][] = [["", field(1, 1)]];
  for (const key of Object.keys(variables).sort()) {
    const { dtype, shape, values } = variables[key]!;
    const bytes = new Uint8Array((values as Float32Array).buffer);
    places.push([
      key,
      join([field(1, dtype), field(2, shapeOf(shape)), field(4, offset), field(5, bytes.byteLength)]),
    ]);
    data.push(bytes);
    offset += bytes.byteLength;
  }
  return [tableOf(places, compressed), join(data)];
}

/** A table with one block of entries. Each key says how much it shares with the one before. */
function tableOf(places: readonly (readonly [string, Bytes])[], compressed: boolean): Bytes {
  const written: Bytes[] = [];
  let offset = 0;
  const add = (block: Bytes): Bytes => {
    const stored = compressed ? compress(block) : block;
    written.push(stored, Uint8Array.of(compressed ? 1 : 0, 0, 0, 0, 0));
    const handle = join([varint(offset), varint(stored.byteLength)]);
    offset += stored.byteLength + 5;
    return handle;
  };
  const data = add(blockOf(places));
  const filters = add(blockOf([]));
  const index = add(blockOf([["\u007f", data]]));
  const handles = join([filters, index]);
  const magic = new Uint8Array(BigUint64Array.of(0xdb47_7524_8b80_fb57n).buffer);
  return join([...written, handles, new Uint8Array(40 - handles.byteLength), magic]);
}

function blockOf(places: readonly (readonly [string, Bytes])[]): Bytes {
  const parts: Bytes[] = [];
  let before: Bytes = new Uint8Array();
  for (const [key, value] of places) {
    const bytes = text.encode(key);
    let shared = 0;
    while (shared < before.length && bytes[shared] === before[shared]) shared++;
    const rest = bytes.subarray(shared);
    parts.push(varint(shared), varint(rest.length), varint(value.length), rest, value);
    before = bytes;
  }
  return join([...parts, new Uint8Array(Uint32Array.of(0, 1).buffer)]);
}

/** Snappy, with a copy wherever four bytes are as they were before. */
function compress(block: Bytes): Bytes {
  const parts: Bytes[] = [varint(block.length)];
  for (let at = 0; at < block.length; ) {
    const back = Array.from({ length: Math.min(at, 200) }, (_, i) => i + 1).find((distance) =>
      [0, 1, 2, 3].every((i) => at + i < block.length && block[at + i] === block[at + i - distance]),
    );
    if (back === undefined) parts.push(Uint8Array.of(0, block[at]!));
    else parts.push(Uint8Array.of(2 | (3 << 2), back & 0xff, back >> 8));
    at += back === undefined ? 1 : 4;
  }
  return join(parts);
}
