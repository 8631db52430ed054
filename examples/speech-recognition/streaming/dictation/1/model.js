/** Samples of 320 ms. */
const PIECE = 5120;
const RATE = 16_000;
const MOST_SECONDS = 120;

/** Sends a signal piece by piece through the ensemble `live_transcript`, and yields the texts that are new. */
export default async function* dictate([request], context) {
  const samples = await samplesOf(request.inputs, context);
  if (samples.length > MOST_SECONDS * RATE) {
    const seconds = (samples.length / RATE).toFixed(1);
    throw new Error(`input 'WAV': expected at most ${MOST_SECONDS} seconds of audio, got ${seconds}`);
  }
  const id = crypto.randomUUID();
  let before = "";
  for (let at = 0; at === 0 || at < samples.length; at += PIECE) {
    const sequence = { id, start: at === 0, end: at + PIECE >= samples.length };
    const piece = samples.slice(at, at + PIECE);
    const { TRANSCRIPT } = await context.infer("live_transcript", { WAV: [piece] }, { sequence });
    const text = Buffer.from(TRANSCRIPT.data[0]).toString();
    if (text !== before || sequence.end) yield [{ TRANSCRIPT: [text], FINAL: [sequence.end] }];
    before = text;
  }
}

async function samplesOf({ WAV, audio }, context) {
  if (WAV !== undefined) return WAV.data;
  if (audio === undefined) throw new Error("expected the input 'WAV' or 'audio', got neither");
  const { waveform } = await context.infer("wav", { audio: [[audio.data[0]]] });
  return waveform.data;
}
