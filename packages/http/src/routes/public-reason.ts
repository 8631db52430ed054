/*
 * A URL; a quoted absolute path, which may have spaces; any other absolute path. A slash behind a word belongs to a
 * relative path.
 */
const PLACES =
  /[a-z][a-z\d+.-]+:\/\/[^\s'"`]+|(?<=(['"`]))(?:[a-z]:)?[\\/][^'"`\n]*(?=\1)|(?<![\w.~-])(?:[a-z]:)?[\\/][^\s'"`,;:()]*\w[^\s'"`,;:()]*/gi;

/**
 * The reason why a model is not ready, for clients that may be anybody: absolute paths are cut to the part from the
 * directory of the model, or to their last name.
 *
 * @example
 * ```ts
 * publicReason("failed to stat file /srv/models/resnet/1/model.onnx", "resnet");
 * // failed to stat file resnet/1/model.onnx
 * ```
 */
export function publicReason(reason: string, modelName: string): string {
  return reason.replace(PLACES, (place) => {
    const isUrl = /^[a-z][a-z\d+.-]+:\/\//i.test(place);
    if (isUrl && !/^file:/i.test(place)) return place;
    const names = place.split(/[\\/]+/).filter((name) => name !== "");
    const start = names.lastIndexOf(modelName);
    return start < 0 ? (names.at(-1) ?? place) : names.slice(start).join("/");
  });
}
