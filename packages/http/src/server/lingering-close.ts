import type { Socket } from "node:net";

/** Milliseconds without a byte after which the client is taken to be gone. Apache's limit. */
const SILENCE_MS = 2000;
/** Milliseconds in which the client must finish, however fast it sends. The limit of nginx and Apache. */
const LONGEST_MS = 30_000;
/** Bytes that are read and dropped: twice the default limit on a tensor. */
const MAX_BYTES = 128 * 1024 * 1024;

/**
 * Ends a connection whose client may still be sending. What is written is sent, and then the end of the connection.
 * Further bytes of the client are read and dropped, unparsed, until the client ends the connection too or reaches a
 * limit. Closing at once would reset the connection: the client's writes then fail, and the answer is lost.
 */
export function lingeringClose(socket: Socket): void {
  socket.end();
  socket.setTimeout(SILENCE_MS, () => socket.destroy());
  const limit = setTimeout(() => socket.destroy(), LONGEST_MS);
  socket.once("end", () => socket.destroy());
  socket.once("close", () => clearTimeout(limit));
  // Node's HTTP parser restarts a socket that it paused when the socket resumes. Without the parser, nothing does.
  if (socket.isPaused()) socket.resume().once("resume", () => drop(socket));
  else drop(socket);
}

/** Reads instead of Node's HTTP parser, which gives up a socket with a further listener for its data. */
function drop(socket: Socket): void {
  const parsers = socket.listeners("data") as (() => void)[];
  let left = MAX_BYTES;
  socket.on("data", ({ length }: Buffer) => {
    left -= length;
    if (left < 0) socket.destroy();
  });
  for (const parser of parsers) socket.off("data", parser);
}
