import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gpu } from "@tritonjs/backends/gpu";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";

const folder = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url));

/** The tutorial's models, the same without Python, and those for streams. */
export const REPOSITORIES = ["models", "steps", "streaming"].map(folder);

/** Samples of 320 ms. */
export const PIECE = 5120;

/** Opens the models. The tutorial's configurations ask for a GPU, and run without one. */
export async function openSpeech(): Promise<Triton> {
  const triton = new Triton({
    extensions: [repository({ modelRepository: REPOSITORIES }), gpu({ fallback: "cpu" })],
  });
  await triton.ready();
  return triton;
}

/** A recording of the test set, and what it says. */
export interface Recording {
  readonly name: string;
  readonly voice: string;
  readonly text: string;
  readonly samples: Float32Array;
}

/** The recordings of this folder: sentences and voices that the network never heard. */
export async function readRecordings(triton: Triton): Promise<readonly Recording[]> {
  const list = JSON.parse(await readFile(`${folder("recordings")}/recordings.json`, "utf8")) as Omit<
    Recording,
    "samples"
  >[];
  return Promise.all(
    list.map(async (one) => ({
      ...one,
      samples: await readWav(triton, await readFile(`${folder("recordings")}/${one.name}`)),
    })),
  );
}

/** Samples of a WAV file at 16 kHz, from -1 to 1. */
export async function readWav(triton: Triton, file: Uint8Array): Promise<Float32Array> {
  const { waveform } = await triton.infer("wav", { audio: [[file]] });
  return waveform!.data as Float32Array;
}

/** The text of an output BYTES [1, 1]. */
export function textOf(output: { readonly data: ArrayLike<unknown> } | undefined): string {
  return new TextDecoder().decode(output!.data[0] as Uint8Array);
}
