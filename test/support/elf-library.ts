/** Processors by the numbers that ELF files have. */
export const ELF_X64 = 62;
export const ELF_ARM64 = 183;

/**
 * A library of Linux without code, which the system's loader opens: it only names libraries that it needs.
 *
 * @param needed names of these libraries
 * @param machine number of the processor
 * @param soname name by which other libraries find it once it is loaded
 */
export function elfLibrary(
  needed: readonly string[] = [],
  machine = process.arch === "arm64" ? ELF_ARM64 : ELF_X64,
  soname = "stand-in",
): Buffer {
  const texts = ["", soname, ...needed];
  const strings = Buffer.from(`${texts.join("\0")}\0`);
  const offsets = texts.map((_, i) =>
    Buffer.byteLength(
      texts
        .slice(0, i)
        .map((text) => `${text}\0`)
        .join(""),
    ),
  );
  const HEADERS = 64 + 3 * 56;
  const hashAt = HEADERS;
  const symbolsAt = hashAt + 16;
  const stringsAt = symbolsAt + 24;
  const dynamicAt = Math.ceil((stringsAt + strings.length) / 16) * 16;
  const dynamic: (readonly [tag: number, value: number])[] = [
    ...needed.map((_, i) => [1, offsets[i + 2]!] as const),
    [14, offsets[1]!],
    [4, hashAt],
    [5, stringsAt],
    [6, symbolsAt],
    [10, strings.length],
    [11, 24],
    [0, 0],
  ];
  const size = dynamicAt + 16 * dynamic.length;
  const file = Buffer.alloc(size);
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  file.writeUInt16LE(3, 16);
  file.writeUInt16LE(machine, 18);
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(64n, 32);
  file.writeUInt16LE(64, 52);
  file.writeUInt16LE(56, 54);
  file.writeUInt16LE(3, 56);
  const segment = (i: number, type: number, at: number, length: number, align: number) => {
    const to = 64 + 56 * i;
    file.writeUInt32LE(type, to);
    file.writeUInt32LE(6, to + 4);
    for (const [j, value] of [at, at, at, length, length, align].entries()) {
      file.writeBigUInt64LE(BigInt(value), to + 8 + 8 * j);
    }
  };
  segment(0, 1, 0, size, 4096);
  segment(1, 2, dynamicAt, 16 * dynamic.length, 8);
  segment(2, 0x6474e551, 0, 0, 16);
  // A table of symbols with one bucket, which is empty.
  file.writeUInt32LE(1, hashAt);
  file.writeUInt32LE(1, hashAt + 4);
  strings.copy(file, stringsAt);
  for (const [i, [tag, value]] of dynamic.entries()) {
    file.writeBigUInt64LE(BigInt(tag), dynamicAt + 16 * i);
    file.writeBigUInt64LE(BigInt(value), dynamicAt + 16 * i + 8);
  }
  return file;
}

/** A library that was cut off: the loader maps it, and touching the missing part ends the process. */
export function cutLibrary(): Buffer {
  const file = elfLibrary();
  const whole = Buffer.alloc(64 + 3 * 56);
  file.copy(whole, 0, 0, whole.length);
  const far = 3n * 4096n;
  // The tables lie in a page that the file does not have.
  whole.writeBigUInt64LE(5n * 4096n, 64 + 32);
  whole.writeBigUInt64LE(5n * 4096n, 64 + 40);
  for (const at of [8, 16, 24]) whole.writeBigUInt64LE(far, 64 + 56 + at);
  return whole;
}
