import type { OutgoingFrame } from "../../../src/frontend-threads/frames.js";
import { IncomingFrame } from "../../../src/frontend-threads/frames.js";

/** Passes a closed frame to the other side: its bytes are copied, and memory that is handed over is moved. */
export function pass(frame: OutgoingFrame): IncomingFrame {
  const bytes = new Uint8Array(frame.size);
  let at = 0;
  for (const part of frame.parts()) {
    bytes.set(part, at);
    at = (at + part.length + 7) & -8;
  }
  const moved = structuredClone(frame.moved, { transfer: frame.moved });
  const incoming = new IncomingFrame(bytes.buffer, () => moved);
  incoming.open(0);
  return incoming;
}
