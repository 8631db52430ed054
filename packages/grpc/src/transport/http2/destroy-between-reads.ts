import type { ServerHttp2Session } from "node:http2";

/**
 * Delays each `destroy` of a session, Node's own calls too, until the session has parsed what it is reading.
 *
 * nghttp2 before 1.68.1, which Node 20 has, goes on with the bytes of the read when the session is destroyed during it. A
 * frame of a wrong length among them then aborts the process (CVE-2026-27135).
 */
export function destroyBetweenReads(session: ServerHttp2Session): void {
  const destroy = session.destroy.bind(session);
  let isDue = false;
  session.destroy = (error, code) => {
    if (isDue) return;
    isDue = true;
    setImmediate(destroy, error, code);
  };
}
