import { inference } from "../../../inference";

/* The v2 routes, for clients of the protocol. */

// The models are in this process: not at the edge, and not at build time.
export const runtime = "nodejs";
export const dynamic = "force-dynamic";

const answer = (request: Request): Promise<Response> => inference().v2(request);

export { answer as GET, answer as POST };
