import { readFile } from "node:fs/promises";

/** Names the species of penguins by the nearest centroid, from bill length, bill depth, flipper length and mass. */
export class Penguins {
  static inputs = [{ name: "measures", dtype: "FP64", shape: [4] }];
  static outputs = [{ name: "species", dtype: "BYTES", shape: [1] }];
  static maxBatchSize = 32;

  async load() {
    this.centroids = Object.entries(
      JSON.parse(await readFile(new URL("penguins/centroids.json", import.meta.url), "utf8")),
    );
  }

  predict(measures) {
    return measures.toArray().map((row) => [this.nearest(row)]);
  }

  nearest(row) {
    // A gram of mass counts less than a millimetre.
    const distance = (centre) =>
      centre.reduce((sum, value, i) => sum + ((value - row[i]) / (i === 3 ? 100 : 1)) ** 2, 0);
    const distances = this.centroids.map(([, centre]) => distance(centre));
    return this.centroids[distances.indexOf(Math.min(...distances))][0];
  }
}
