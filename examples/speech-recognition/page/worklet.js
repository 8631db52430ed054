/** Passes what the microphone hears on in pieces of 320 ms. Runs on the audio thread of the browser. */
class Pieces extends AudioWorkletProcessor {
  #piece = new Float32Array(5120);
  #length = 0;

  process([[channel]]) {
    // A block has 128 samples, a divisor of a piece.
    if (channel === undefined) return true;
    this.#piece.set(channel, this.#length);
    this.#length += channel.length;
    if (this.#length === this.#piece.length) {
      this.port.postMessage(this.#piece, [this.#piece.buffer]);
      this.#piece = new Float32Array(5120);
      this.#length = 0;
    }
    return true;
  }
}

registerProcessor("pieces", Pieces);
