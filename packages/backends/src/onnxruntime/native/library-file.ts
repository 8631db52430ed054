import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { TritonError } from "@tritonjs/protocol";

/** A program library, as its first bytes describe it. */
interface Binary {
  readonly platform: string;
  readonly arch: string;
}

const ELF_MACHINES: Readonly<Record<number, string>> = {
  3: "ia32",
  8: "mips",
  21: "ppc64",
  22: "s390x",
  40: "arm",
  62: "x64",
  183: "arm64",
  243: "riscv64",
  258: "loong64",
};
const PE_MACHINES: Readonly<Record<number, string>> = { 332: "ia32", 34404: "x64", 43620: "arm64" };
const MACH_MACHINES: Readonly<Record<number, string>> = { 16777223: "x64", 16777228: "arm64" };

/**
 * Says what keeps this process from opening a file as a library, for the end of a text: `got a library for linux
 * arm64`. The system's loader says of a library for another processor that the file does not exist.
 *
 * @returns undefined if nothing is known against it
 */
export function faultOfLibraryFile(file: string, { platform, arch }: Binary = process): string | undefined {
  // The system's loader looks for a bare name.
  if (dirname(file) === "." && !file.startsWith(".")) return undefined;
  try {
    if (!statSync(file).isFile()) return "got something that is not a file";
    const binary = readBinary(file);
    if (binary === undefined) return "got a file that is not a library";
    const fits = binary.platform === platform && (binary.arch === arch || binary.arch === "any");
    return fits ? undefined : `got a library for ${binary.platform} ${binary.arch}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "got no such file";
    return `got a file that cannot be read (${TritonError.from(error).message})`;
  }
}

function readBinary(file: string): Binary | undefined {
  const head = new DataView(new ArrayBuffer(4096));
  const descriptor = openSync(file, "r");
  try {
    readSync(descriptor, head, 0, head.byteLength, 0);
  } finally {
    closeSync(descriptor);
  }
  const magic = head.getUint32(0);
  if (magic === 0x7f454c46) {
    const isLittle = head.getUint8(5) === 1;
    const machine = head.getUint16(18, isLittle);
    return { platform: "linux", arch: ELF_MACHINES[machine] ?? `processor ${machine}` };
  }
  if (magic === 0xcffaedfe) {
    const machine = head.getUint32(4, true);
    return { platform: "darwin", arch: MACH_MACHINES[machine] ?? `processor ${machine}` };
  }
  if (magic === 0xcafebabe) return { platform: "darwin", arch: "any" };
  if (magic >>> 16 !== 0x4d5a) return undefined;
  const at = head.getUint32(0x3c, true);
  if (at > head.byteLength - 6 || head.getUint32(at) !== 0x50450000) return undefined;
  const machine = head.getUint16(at + 4, true);
  return { platform: "win32", arch: PE_MACHINES[machine] ?? `processor ${machine}` };
}

/** The C library of a process on Linux: Alpine has musl, other distributions glibc. */
type CLibrary = "glibc" | "musl";

function libraryOfProcess(): CLibrary | undefined {
  if (process.platform !== "linux") return undefined;
  const { header } = process.report.getReport() as { readonly header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime === undefined ? "musl" : "glibc";
}

/**
 * Says that a library is made for another C library than that of this process, for the end of a text. Undefined if it
 * is not, and if nothing is known.
 *
 * @param own the C library of this process
 */
export function foreignLibc(
  file: string,
  own: CLibrary | undefined = libraryOfProcess(),
): string | undefined {
  const needed = neededLibraries(file);
  const wanted = needed.some((name) => name.startsWith("libc.musl-"))
    ? "musl"
    : needed.includes("libc.so.6")
      ? "glibc"
      : undefined;
  if (own === undefined || wanted === undefined || wanted === own) return undefined;
  return `got a library for ${wanted}, but this process has ${own}; use a build for ${own}, or the engine 'wasm', which needs no library`;
}

const DT_NEEDED = 1n;
const DT_STRTAB = 5n;
const PT_LOAD = 1;
const PT_DYNAMIC = 2;

/**
 * Names of the libraries that a library of Linux needs, as the system's loader looks for them: `libcudnn.so.9`. Empty
 * for other files, and for one that is cut off.
 */
export function neededLibraries(file: string): readonly string[] {
  try {
    const bytes = readFileSync(file);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (view.getUint32(0) !== 0x7f454c46 || view.getUint8(4) !== 2 || view.getUint8(5) !== 1) return [];
    const [table, size, count] = [
      Number(view.getBigUint64(32, true)),
      view.getUint16(54, true),
      view.getUint16(56, true),
    ];
    const segments = Array.from({ length: count }, (_, i) => {
      const at = table + i * size;
      const word = (offset: number) => Number(view.getBigUint64(at + offset, true));
      return { type: view.getUint32(at, true), offset: word(8), address: word(16), length: word(32) };
    });
    const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
    if (dynamic === undefined) return [];
    const entries: [tag: bigint, value: number][] = [];
    for (let at = dynamic.offset; at < dynamic.offset + dynamic.length; at += 16) {
      entries.push([view.getBigUint64(at, true), Number(view.getBigUint64(at + 8, true))]);
    }
    const texts = entries.find(([tag]) => tag === DT_STRTAB)?.[1] ?? 0;
    const loaded = segments.find(
      ({ type, address, length }) => type === PT_LOAD && texts >= address && texts < address + length,
    );
    const from = texts - (loaded?.address ?? 0) + (loaded?.offset ?? 0);
    return entries
      .filter(([tag]) => tag === DT_NEEDED)
      .map(([, offset]) => bytes.toString("latin1", from + offset, bytes.indexOf(0, from + offset)));
  } catch {
    return [];
  }
}
