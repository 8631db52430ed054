/** What a WAV file of the tests has. */
export interface WavContent {
  readonly tag?: 1 | 3 | 6 | 7;
  readonly bits?: 8 | 16 | 24 | 32 | 64;
  readonly channels?: number;
  readonly sampleRate?: number;
  /** True for the long form of the chunk `fmt `. */
  readonly extensible?: boolean;
  /** Chunks before the samples: name and data. */
  readonly chunks?: readonly (readonly [string, Uint8Array])[];
  /** Size that the chunk of the samples claims. @default its size */
  readonly claimedSize?: number;
}

/** Writes a WAV file. @param samples bytes of the samples, block by block */
export function writeWav(samples: Uint8Array, content: WavContent = {}): Uint8Array {
  const { tag = 1, bits = 16, channels = 1, sampleRate = 16_000, extensible = false, chunks = [] } = content;
  const block = (channels * bits) / 8;
  const format = Buffer.alloc(extensible ? 40 : 16);
  format.writeUInt16LE(extensible ? 0xfffe : tag, 0);
  format.writeUInt16LE(channels, 2);
  format.writeUInt32LE(sampleRate, 4);
  format.writeUInt32LE((sampleRate * block) % 2 ** 32, 8);
  format.writeUInt16LE(block % 2 ** 16, 12);
  format.writeUInt16LE(bits, 14);
  if (extensible) {
    format.writeUInt16LE(22, 16);
    format.writeUInt16LE(bits, 18);
    format.writeUInt16LE(tag, 24);
    format.set([0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71], 26);
  }
  const parts = [chunk("fmt ", format), ...chunks.map(([name, data]) => chunk(name, data))];
  parts.push(chunk("data", samples, content.claimedSize));
  const body = Buffer.concat([Buffer.from("WAVE"), ...parts]);
  return new Uint8Array(chunk("RIFF", body));
}

/** Samples from -1 to 1 as signed integers of a size. */
export function integers(samples: readonly number[], bits: 16 | 24 | 32): Uint8Array {
  const bytes = Buffer.alloc((samples.length * bits) / 8);
  for (const [i, sample] of samples.entries()) {
    const value = Math.max(
      -(2 ** (bits - 1)),
      Math.min(2 ** (bits - 1) - 1, Math.round(sample * 2 ** (bits - 1))),
    );
    bytes.writeIntLE(value, (i * bits) / 8, bits / 8);
  }
  return bytes;
}

function chunk(name: string, data: Uint8Array, claimed = data.length): Buffer {
  const head = Buffer.alloc(8);
  head.write(name, "latin1");
  head.writeUInt32LE(claimed, 4);
  return Buffer.concat([head, data, Buffer.alloc(data.length % 2)]);
}
