import type { GeneratorRequest } from "../request/text-request.js";
import type { TextGenerationContext } from "./generation-context.js";
import type { YieldedPiece } from "./yielded-piece.js";

/** Pieces of an answer, over time or at once. */
export type YieldedPieces = AsyncIterable<YieldedPiece> | Iterable<YieldedPiece>;

/** A function that generates text, as {@link textGenerator} takes it: a generator, or a function of one answer. */
export type TextCallback = (
  request: GeneratorRequest,
  context: TextGenerationContext,
) => YieldedPieces | YieldedPiece | Promise<YieldedPieces | YieldedPiece>;
