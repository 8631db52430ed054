import { type ErrorCode, TritonError } from "@tritonjs/core";
import { inference } from "../../../inference";

/* A route of the application that calls the model in process. */

export const runtime = "nodejs";
export const dynamic = "force-dynamic";

const KINDS = ["setosa", "versicolor", "virginica"];

/** HTTP statuses of errors that are not the fault of the model. The page of errors lists all codes. */
const STATUSES: Partial<Record<ErrorCode, number>> = { INVALID_ARG: 400, UNAVAILABLE: 503 };

/** Answers `{ "measurements": [5.1, 3.5, 1.4, 0.2] }` with the kind of the flower. */
export async function POST(request: Request): Promise<Response> {
  const { measurements } = (await request.json()) as { measurements: number[] };
  try {
    const { species } = await inference().iris.inferSample({ measurements }, { signal: request.signal });
    return Response.json({ species: KINDS[Number(species.get(0))] });
  } catch (error) {
    if (!TritonError.is(error)) throw error;
    const status = STATUSES[error.code] ?? 500;
    return Response.json({ error: status < 500 ? error.message : "the model cannot answer" }, { status });
  }
}
