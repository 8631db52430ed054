import { spawnSync } from "node:child_process";

/** Whether the program that unpacks archives is installed. */
export const hasTar = spawnSync("tar", ["--version"], { stdio: "ignore" }).status === 0;

/** A file of an archive; one with `link` is a symbolic link. */
export interface TarEntry {
  readonly name: string;
  readonly content?: string;
  readonly link?: string;
}

const BLOCK = 512;

/** A tar archive (ustar) of executable files. */
export function tarOf(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = Buffer.from(entry.content ?? "");
    return [header(entry, content.length), content, Buffer.alloc(-content.length & (BLOCK - 1))];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

function header({ name, link }: TarEntry, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, "0")}\0`;
  block.write(name, 0);
  block.write(octal(0o755, 7) + octal(0, 7) + octal(0, 7) + octal(size, 11) + octal(0, 11), 100);
  block.write("        ", 148);
  block.write(link === undefined ? "0" : "2", 156);
  block.write(link ?? "", 157);
  block.write("ustar\u000000", 257);
  block.write(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      6,
    )} `,
    148,
  );
  return block;
}
