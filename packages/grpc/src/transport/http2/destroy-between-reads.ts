import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

/**
 * Delays each `destroy` of a session, Node's own calls too, until the session has parsed what it is reading. A session
 * that cannot send ends with its connection.
 *
 * nghttp2 before 1.68.1, which Node 20 has, goes on with the bytes of the read when the session is destroyed during it. A
 * frame of a wrong length among them then aborts the process (CVE-2026-27135).
 *
 * Node lets go of the answers of a destroyed session while the system still sends from their memory. A client that reads
 * again later would get what is in this memory by then: answers to others.
 */
export function destroyBetweenReads(session: ServerHttp2Session, socket: Socket): void {
  const destroy = session.destroy.bind(session);
  let isDue = false;
  session.destroy = (error, code) => {
    if (isDue) return;
    isDue = true;
    setImmediate(() => {
      const isStuck = (session.state.outboundQueueSize ?? 0) > 0;
      destroy(error, code);
      if (isStuck) socket.destroy();
    });
  };
}
