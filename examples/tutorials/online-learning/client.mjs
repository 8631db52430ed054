import { parseArgs } from "node:util";
import { ModelClient } from "@tritonjs/client/http";
import { drawDigits, PIXELS, randomNumbers } from "./digits.mjs";

/* Trains `digits_train` over HTTP while other clients ask `digits`, and counts their answers. */

const { values } = parseArgs({
  options: {
    url: { type: "string", default: "http://localhost:8000" },
    batches: { type: "string", default: "60" },
    clients: { type: "string", default: "4" },
  },
});

const digits = new ModelClient(values.url, "digits");
const learner = new ModelClient(values.url, "digits_train");
const exam = drawDigits(500, randomNumbers(99));

async function accuracy() {
  let right = 0;
  for (let row = 0; row < exam.targets.length; row += 50) {
    const { scores } = await digits.inferBatch({
      image: exam.images.subarray(row * PIXELS, (row + 50) * PIXELS),
    });
    for (let i = 0; i < 50; i++) {
      const ofRow = scores.data.subarray(i * 10, i * 10 + 10);
      if (ofRow.indexOf(Math.max(...ofRow)) === exam.targets[row + i]) right++;
    }
  }
  return right / exam.targets.length;
}

let training = true;
const seen = { sent: 0, answered: 0, versions: new Set() };

/** Asks one picture after the other while training runs. Versions never go back. */
async function ask(seed) {
  const random = randomNumbers(seed);
  let last = 0;
  while (training) {
    const { images } = drawDigits(1, random);
    seen.sent++;
    const { version } = await digits.inferSample({ image: images });
    seen.answered++;
    const [number] = version.data;
    if (number < last) throw new Error(`version ${number} answered after version ${last}`);
    last = number;
    seen.versions.add(number);
  }
}

const before = await accuracy();
const asking = Array.from({ length: Number(values.clients) }, (_, index) => ask(1000 + index));
const random = randomNumbers(2);
let loss = 0;
for (let i = 0; i < Number(values.batches); i++) {
  const { images, targets } = drawDigits(256, random);
  const answer = await learner.inferBatch({ image: images, target: targets });
  loss = answer.loss.data.reduce((sum, one) => sum + one, 0) / 256;
}
training = false;
await Promise.all(asking);
console.log(
  `accuracy ${before.toFixed(2)} before, ${(await accuracy()).toFixed(2)} after; last loss ${loss.toFixed(2)}`,
);
console.log(
  `${seen.answered} of ${seen.sent} requests answered while training, by ${seen.versions.size} versions`,
);
await Promise.all([digits.close(), learner.close()]);
