import type { SampleEncoding } from "./wav-format.js";

/** Reads the sample at a place; full scale is 1. */
export type ReadSample = (data: DataView, place: number) => number;

/** Chooses the reader of an encoding. NaN and infinities of float samples become 0. */
export function sampleReader(encoding: SampleEncoding, sampleBytes: number): ReadSample {
  if (encoding === "unsigned") return (data, place) => (data.getUint8(place) - 128) / 128;
  if (encoding === "alaw") return (data, place) => ALAW[data.getUint8(place)]!;
  if (encoding === "mulaw") return (data, place) => MULAW[data.getUint8(place)]!;
  if (encoding === "float") {
    return sampleBytes === 4
      ? (data, place) => finite(data.getFloat32(place, true))
      : (data, place) => finite(data.getFloat64(place, true));
  }
  if (sampleBytes === 2) return (data, place) => data.getInt16(place, true) / 2 ** 15;
  if (sampleBytes === 4) return (data, place) => data.getInt32(place, true) / 2 ** 31;
  return (data, place) => ((data.getInt8(place + 2) << 16) | data.getUint16(place, true)) / 2 ** 23;
}

/** Replaces NaN and infinities by 0: one such sample would make every value computed from it NaN. */
function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}

/** ITU-T G.711: a sign, 3 bits of the segment, 4 bits inside it. */
const ALAW = Float64Array.from({ length: 256 }, (_, code) => {
  const bits = code ^ 0x55;
  const segment = (bits & 0x70) >> 4;
  const inside = ((bits & 0x0f) << 4) + 8;
  const size = segment === 0 ? inside : (inside + 0x100) << (segment - 1);
  return ((bits & 0x80) === 0 ? -size : size) / 2 ** 15;
});

const MULAW = Float64Array.from({ length: 256 }, (_, code) => {
  const bits = ~code & 0xff;
  const size = ((((bits & 0x0f) << 3) + 0x84) << ((bits & 0x70) >> 4)) - 0x84;
  return ((bits & 0x80) === 0 ? size : -size) / 2 ** 15;
});
