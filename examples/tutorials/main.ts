/*
 * Programs of Triton's and PyTriton's tutorials, with the tutorials' own configurations.
 *
 *   npm start               runs all of them
 *   npm start -- resnet50   runs one
 */
import { grpcTour, httpTour } from "./client-tours.js";
import { faces } from "./faces.js";
import { dali, resnet50, twoNetworks, warmUp } from "./resnet.js";
import { textDetection } from "./text-detection.js";
import { zeroShot } from "./zero-shot.js";

const PROGRAMS: Readonly<Record<string, () => Promise<void>>> = {
  "grpc-tour": grpcTour,
  "text-detection": textDetection,
  "warm-up": warmUp,
  resnet50,
  "http-tour": httpTour,
  "two-networks": twoNetworks,
  faces,
  dali,
  "zero-shot": zeroShot,
};

const given = process.argv.slice(2);
const unknown = given.filter((name) => !(name in PROGRAMS));
if (unknown.length > 0) {
  console.error(`no program ${unknown.join(", ")}; there are ${Object.keys(PROGRAMS).join(", ")}`);
  process.exit(1);
}
for (const name of given.length > 0 ? given : Object.keys(PROGRAMS)) {
  console.log(`== ${name}`);
  await PROGRAMS[name]!();
}
