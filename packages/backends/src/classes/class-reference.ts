/** A class in a file, as `--model` and `implementation` of a `model-settings.json` name it. */
export interface ClassReference {
  /** Path of the module, as written. */
  readonly module: string;
  readonly className: string;
  readonly language: "javascript" | "python";
}

/**
 * Reads `module.js#Class`, `module.py#Class` and `module.py:Class`.
 *
 * @returns undefined for a text of another form
 */
export function parseClassReference(text: string): ClassReference | undefined {
  const [, module, className] =
    /^(.+\.(?:py|[cm]?js|m?ts))[#:]([\p{ID_Start}_$][\p{ID_Continue}$]*)$/u.exec(text) ?? [];
  if (module === undefined || className === undefined) return undefined;
  return { module, className, language: module.endsWith(".py") ? "python" : "javascript" };
}
