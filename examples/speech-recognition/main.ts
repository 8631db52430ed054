/*
 * Speech to text: the five models of the tutorial over HTTP, and the same network while somebody speaks, over gRPC.
 * `npm start -- recording.wav` transcribes recordings of your own.
 */
import { readFile } from "node:fs/promises";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { openSpeech, PIECE, readRecordings, readWav } from "./speech-server.js";
import { WordErrors } from "./word-errors.js";

await using triton = await openSpeech();
const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
const client = new HttpClient(addresses.http!.url);
const streams = new GrpcClient(addresses.grpc!.url);
const text = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);

/** The transcript of a whole signal. */
async function transcribe(modelName: string, samples: Float32Array): Promise<string> {
  const result = await client.infer(modelName, {
    inputs: {
      WAV: { datatype: "FP32", shape: [1, samples.length], data: samples },
      WAV_LENS: { datatype: "INT32", shape: [1, 1], data: [samples.length] },
    },
  });
  return text(result.elements("TRANSCRIPTS", "BYTES")[0]);
}

/** Sends a signal in pieces of 320 ms, as a microphone would, and yields the text so far after each. */
async function* listen(samples: Float32Array, id: string): AsyncGenerator<string> {
  const requests = function* () {
    for (let at = 0; at === 0 || at < samples.length; at += PIECE) {
      const data = samples.slice(at, at + PIECE);
      const sequence = { id, start: at === 0, end: at + PIECE >= samples.length };
      const WAV = { datatype: "FP32", shape: [1, data.length], data } as const;
      yield { modelName: "live_transcript", inputs: { WAV }, sequence };
    }
  };
  for await (const { result, error } of streams.streamInfer(requests())) {
    if (error !== undefined) throw error;
    yield text(result.elements("TRANSCRIPT", "BYTES")[0]);
  }
}

const given = process.argv.slice(2);
for (const path of given) {
  console.log(
    `${path}: ${await transcribe("attention_rescoring", await readWav(triton, await readFile(path)))}`,
  );
}
if (given.length === 0) {
  const recordings = await readRecordings(triton);
  const counts = { python: new WordErrors(), live: new WordErrors() };
  let equal = 0;
  for (const { name, text: said, samples } of recordings) {
    const heard = await transcribe("attention_rescoring", samples);
    console.log(`${name}: ${heard}`);
    counts.python.add(said, heard);
    if ((await transcribe("transcribe", samples)) === heard) equal++;
  }
  console.log(`word error rate of attention_rescoring: ${counts.python.percent} %`);
  console.log(`transcribe, without Python, has the same text for ${equal} of ${recordings.length}`);
  let partial = "";
  for await (const now of listen(recordings[0]!.samples, "first")) {
    if (now !== partial) console.log(`live: ${now}`);
    partial = now;
  }
  for (const { name, text: said, samples } of recordings) {
    let last = "";
    for await (const now of listen(samples, name)) last = now;
    counts.live.add(said, last);
  }
  console.log(`word error rate of live_transcript: ${counts.live.percent} %`);
}
client.close();
streams.close();
