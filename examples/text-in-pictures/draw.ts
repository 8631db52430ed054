import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import sharp from "sharp";

/*
 * Draws the pictures of the example. They are part of the repository, because a machine may lack fonts.
 *
 *   npm run draw
 */

interface Line {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly size: number;
}

const PICTURES: Readonly<Record<string, { background: string; ink: string; lines: readonly Line[] }>> = {
  invoice: {
    background: "#ffffff",
    ink: "#111111",
    lines: [
      { text: "Hello Triton in Node", x: 30, y: 70, size: 40 },
      { text: "INVOICE 2026-11-21", x: 30, y: 160, size: 32 },
      { text: "Total: 1234.56 EUR", x: 300, y: 260, size: 28 },
    ],
  },
  sign: {
    background: "#0b5d2a",
    ink: "#ffffff",
    lines: [
      { text: "Platform 9", x: 40, y: 90, size: 52 },
      { text: "Mind the gap between the train and the platform", x: 40, y: 180, size: 24 },
    ],
  },
  receipt: {
    background: "#f4efe4",
    ink: "#33302a",
    lines: [
      { text: "Espresso", x: 40, y: 60, size: 26 },
      { text: "2.40", x: 480, y: 60, size: 26 },
      { text: "Croissant", x: 40, y: 130, size: 26 },
      { text: "3.10", x: 480, y: 130, size: 26 },
      { text: "Thank you for your visit", x: 150, y: 240, size: 26 },
    ],
  },
};

const folder = new URL("../pictures/", import.meta.url);
await mkdir(folder, { recursive: true });
for (const [name, { background, ink, lines }] of Object.entries(PICTURES)) {
  const texts = lines.map(
    ({ text, x, y, size }) => `<text x="${x}" y="${y}" font-size="${size}" fill="${ink}">${text}</text>`,
  );
  const svg =
    `<svg xmlns="http://www.w3.org/2000/svg" width="640" height="320" font-family="DejaVu Sans, sans-serif">` +
    `<rect width="640" height="320" fill="${background}"/>${texts.join("")}</svg>`;
  await sharp(Buffer.from(svg))
    .png({ palette: true })
    .toFile(fileURLToPath(new URL(`${name}.png`, folder)));
}
