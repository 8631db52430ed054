/** Species in the order of the model's class numbers. */
export const irisSpecies: readonly string[] = ["setosa", "versicolor", "virginica"];

/** Column names of the measurements, in the order in which the model takes them. */
export const irisMeasurements: readonly string[] = [
  "sepal_length",
  "sepal_width",
  "petal_length",
  "petal_width",
];

/** One row of the data set. */
export interface Iris {
  /** Sepal length, sepal width, petal length, petal width, in centimetres. */
  readonly measurements: readonly number[];
  /** Index into {@link irisSpecies}. */
  readonly species: number;
}

/**
 * Reads the data set from the text of `iris.csv`.
 *
 * @throws Error with the line number, if a line has other columns than the header.
 */
export function parseIris(csvText: string): Iris[] {
  const [header, ...lines] = csvText.trimEnd().split(/\r?\n/);
  const expected = [...irisMeasurements, "species"].join(",");
  if (header !== expected) throw new Error(`iris data, line 1: expected "${expected}", got "${header}"`);
  return lines.map((line, index) => {
    const fields = line.split(",");
    const measurements = fields.slice(0, -1).map(Number);
    const species = irisSpecies.indexOf(fields.at(-1) ?? "");
    const complete = measurements.length === irisMeasurements.length && measurements.every(isLength);
    if (!complete || species < 0) throw new Error(`iris data, line ${index + 2}: cannot read "${line}"`);
    return { measurements, species };
  });
}

function isLength(centimetres: number): boolean {
  return Number.isFinite(centimetres) && centimetres > 0;
}
