import type { TextGenerationContext } from "./generation-context.js";
import type { TextPiece } from "./text-piece.js";
import type { TextRequest } from "./text-request.js";

/** Pieces of an answer, over time or at once. */
export type TextPieces = AsyncIterable<TextPiece> | Iterable<TextPiece>;

/** A function that generates text, as {@link textGenerator} takes it: a generator, or a function of one answer. */
export type TextCallback = (
  request: TextRequest,
  context: TextGenerationContext,
) => TextPieces | TextPiece | Promise<TextPieces | TextPiece>;
