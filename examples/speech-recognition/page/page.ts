import { InferenceServerClient } from "@tritonjs/client/http";

/*
 * The script of the page, which runs in the browser. Each piece of 320 ms is a request of one sequence over HTTP, and
 * its answer has the text so far. The v2 protocol has sequences, so the page needs no protocol of its own as a WebSocket
 * would, and any proxy that passes HTTP passes it on.
 */

const RATE = 16_000;
const PIECE = 5120;

const client = new InferenceServerClient(location.origin);
const button = document.querySelector("button")!;
const files = document.querySelector("input")!;
const status = document.querySelector("[role=status]")!;
const output = document.querySelector("output")!;

/** A text that grows piece by piece. Pieces are sent one after the other. */
class Dictation {
  readonly #id = crypto.randomUUID();
  #turn: Promise<void> = Promise.resolve();
  #isNew = true;

  /** @param end true for the last piece, which may be empty */
  add(piece: Float32Array, end = false): Promise<void> {
    const sequence = { id: this.#id, start: this.#isNew, end };
    this.#isNew = false;
    this.#turn = this.#turn.then(async () => {
      const inputs = { WAV: { datatype: "FP32", shape: [1, piece.length], data: piece } } as const;
      const result = await client.infer("live_transcript", { inputs, sequence });
      output.textContent = new TextDecoder().decode(result.elements("TRANSCRIPT", "BYTES")[0]);
    });
    return this.#turn;
  }
}

function tell(error: unknown): void {
  status.textContent = (error as Error).message;
}

/** Listens until the returned function is called. */
async function listen(): Promise<() => Promise<void>> {
  // The browser brings the samples to the network's rate.
  const audio = new AudioContext({ sampleRate: RATE });
  try {
    await audio.audioWorklet.addModule("/worklet.js");
    const pieces = new AudioWorkletNode(audio, "pieces", { channelCount: 1, channelCountMode: "explicit" });
    const dictation = new Dictation();
    pieces.port.onmessage = ({ data }) => void dictation.add(data).catch(tell);
    // The microphone opens last, so no word comes before there is a place for it.
    const constraints = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    const stream = await navigator.mediaDevices.getUserMedia({ audio: constraints });
    audio.createMediaStreamSource(stream).connect(pieces);
    return async () => {
      for (const track of stream.getTracks()) track.stop();
      pieces.port.onmessage = null;
      await audio.close();
      await dictation.add(new Float32Array(), true);
    };
  } catch (error) {
    await audio.close();
    throw error;
  }
}

/** Sends a recording of any rate and format that the browser decodes. */
async function transcribe(file: File): Promise<void> {
  const audio = new OfflineAudioContext(1, 1, RATE);
  const decoded = await audio.decodeAudioData(await file.arrayBuffer());
  const samples = decoded.getChannelData(0);
  const dictation = new Dictation();
  for (let at = 0; at === 0 || at < samples.length; at += PIECE) {
    await dictation.add(samples.slice(at, at + PIECE), at + PIECE >= samples.length);
  }
}

let stop: (() => Promise<void>) | undefined;

button.addEventListener("click", async () => {
  button.disabled = true;
  try {
    if (stop === undefined) {
      output.textContent = "";
      stop = await listen();
      status.textContent = "Listening";
    } else {
      const end = stop;
      stop = undefined;
      await end();
      status.textContent = "Done";
    }
  } catch (error) {
    tell(error);
  }
  button.textContent = stop === undefined ? "Speak" : "Stop";
  button.disabled = false;
});

files.addEventListener("change", async () => {
  const [file] = files.files ?? [];
  if (file === undefined) return;
  output.textContent = "";
  status.textContent = "Reading";
  await transcribe(file).then(() => {
    status.textContent = "Done";
  }, tell);
});
