import { LARGE_REQUEST_BYTES } from "@tritonjs/core/frontend";
import { DATA_TYPES, type DataType, Tensor } from "@tritonjs/protocol";
import type { IncomingFrame } from "./incoming-frame.js";
import type { OutgoingFrame } from "./outgoing-frame.js";

type Tensors = ReadonlyMap<string, Tensor>;

/* Bits in the word that describes a tensor, above the code of its data type. */

/** The dimensions are words; otherwise texts, because a client may send numbers of 64 bits. */
const SMALL_DIMS = 1 << 8;
/** The bytes are in memory that was handed over; otherwise inside the frame. */
const ELSEWHERE = 1 << 9;

/** Code of a data type that does not exist, which a client may name all the same. Its name follows. */
const UNKNOWN_TYPE = 0xff;

const codes = new Map<DataType, number>(DATA_TYPES.map((datatype, code) => [datatype, code]));

const MAX_WORD = 0x7fff_ffff;

/**
 * Writes tensors by name.
 *
 * @param known names that both sides know; they are sent as numbers
 * @param movable whether the memory of large tensors may be handed over. If not, it is copied, and the copy is handed
 * over
 */
export function writeTensorMap(
  frame: OutgoingFrame,
  tensors: Tensors,
  known: readonly { readonly name: string }[],
  movable: boolean,
): void {
  frame.word(tensors.size);
  for (const [name, tensor] of tensors) {
    writeName(frame, name, known);
    writeTensor(frame, tensor, movable);
  }
}

/** Reads tensors that {@link writeTensorMap} wrote. */
export function readTensorMap(
  frame: IncomingFrame,
  known: readonly { readonly name: string }[],
): Map<string, Tensor> {
  const count = frame.word();
  const tensors = new Map<string, Tensor>();
  for (let i = 0; i < count; i++) {
    const name = readName(frame, known);
    tensors.set(name, readTensor(frame));
  }
  return tensors;
}

/** Writes a name, as a number if both sides know it. */
export function writeName(
  frame: OutgoingFrame,
  name: string,
  known: readonly { readonly name: string }[],
): void {
  for (let i = 0; i < known.length; i++) {
    if (known[i]!.name === name) {
      frame.word(i + 1);
      return;
    }
  }
  frame.word(0);
  frame.text(name);
}

/** Reads a name that {@link writeName} wrote. */
export function readName(frame: IncomingFrame, known: readonly { readonly name: string }[]): string {
  const number = frame.word();
  return number === 0 ? frame.text() : known[number - 1]!.name;
}

function writeTensor(frame: OutgoingFrame, { datatype, shape, bytes }: Tensor, movable: boolean): void {
  const place = frame.place(bytes);
  const isSmall = shape.every((dim) => typeof dim === "number" && dim >= 0 && dim <= MAX_WORD);
  const code = codes.get(datatype);
  frame.word((code ?? UNKNOWN_TYPE) | (isSmall ? SMALL_DIMS : 0) | (place === undefined ? ELSEWHERE : 0));
  if (code === undefined) frame.text(datatype);
  frame.word(shape.length);
  for (const dim of shape) {
    if (isSmall) frame.word(dim);
    else frame.text(typeof dim === "bigint" ? `${dim as bigint}n` : String(dim));
  }
  frame.double(bytes.length);
  if (place !== undefined) {
    frame.word(place);
    return;
  }
  const { buffer } = bytes;
  const mayMove = movable && isOwn(bytes);
  frame.word(frame.hand(mayMove ? (buffer as ArrayBuffer) : copyOf(bytes)));
  frame.double(mayMove ? bytes.byteOffset : 0);
}

/** True for memory that belongs to one request alone. Node.js shares at most 64 KiB among several chunks of sockets. */
function isOwn({ buffer }: Uint8Array): boolean {
  return buffer instanceof ArrayBuffer && buffer.byteLength > LARGE_REQUEST_BYTES;
}

function copyOf(bytes: Uint8Array): ArrayBuffer {
  const copy = new Uint8Array(Buffer.allocUnsafeSlow(bytes.length).buffer);
  copy.set(bytes);
  return copy.buffer;
}

function readTensor(frame: IncomingFrame): Tensor {
  const word = frame.word();
  const datatype = (word & 0xff) === UNKNOWN_TYPE ? (frame.text() as DataType) : DATA_TYPES[word & 0xff]!;
  const rank = frame.word();
  const shape: number[] = [];
  for (let axis = 0; axis < rank; axis++) {
    shape[axis] = word & SMALL_DIMS ? frame.word() : readLargeDim(frame.text());
  }
  const length = frame.double();
  const at = frame.word();
  const bytes =
    word & ELSEWHERE ? new Uint8Array(frame.moved[at]!, frame.double(), length) : frame.placed(at, length);
  return Tensor.fromBytes(datatype, shape, bytes);
}

/** A dimension beyond the safe integers is a bigint, which the validation refuses. */
function readLargeDim(text: string): number {
  return text.endsWith("n") ? (BigInt(text.slice(0, -1)) as unknown as number) : Number(text);
}
