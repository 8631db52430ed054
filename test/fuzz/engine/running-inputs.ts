import { closeSync, openSync, readFileSync, writeSync } from "node:fs";

/**
 * The inputs that are running, in a file: what a process that hangs or crashes was given.
 *
 *   number of the batch: 4 bytes | count: 4 bytes | for each input: length: 4 bytes, bytes
 */
export class RunningInputs {
  readonly #file: number;
  #batch = 0;

  constructor(path: string) {
    this.#file = openSync(path, "w");
  }

  write(inputs: readonly Uint8Array[]): void {
    const parts: Uint8Array[] = [numbers(++this.#batch, inputs.length)];
    for (const input of inputs) parts.push(numbers(input.length), input);
    const bytes = Buffer.concat(parts);
    writeSync(this.#file, bytes, 0, bytes.length, 0);
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** Reads the file of a process that has ended. */
export function readRunningInputs(path: string): Uint8Array[] {
  const bytes = readFileSync(path);
  const inputs: Uint8Array[] = [];
  if (bytes.length < 8) return inputs;
  for (let at = 8, left = bytes.readUInt32LE(4); left > 0; left--) {
    const end = at + 4 + bytes.readUInt32LE(at);
    inputs.push(bytes.subarray(at + 4, end));
    at = end;
  }
  return inputs;
}

function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeUInt32LE(value, 4 * i);
  return bytes;
}
