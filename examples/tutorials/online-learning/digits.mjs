/* Pictures of digits, 9 x 9 pixels, drawn from a font with shifts, gaps and noise. */

const FONT = [
  "01110 10001 10011 10101 11001 10001 01110",
  "00100 01100 00100 00100 00100 00100 01110",
  "01110 10001 00001 00010 00100 01000 11111",
  "11111 00010 00100 00010 00001 10001 01110",
  "00010 00110 01010 10010 11111 00010 00010",
  "11111 10000 11110 00001 00001 10001 01110",
  "00110 01000 10000 11110 10001 10001 01110",
  "11111 00001 00010 00100 01000 01000 01000",
  "01110 10001 10001 01110 10001 10001 01110",
  "01110 10001 10001 01111 00001 00010 01100",
].map((rows) => rows.split(" "));

export const SIDE = 9;
export const PIXELS = SIDE * SIDE;

/** Numbers from 0 to 1 that a seed decides (mulberry32). */
export function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Draws `count` pictures. @returns their pixels one after the other, and their digits */
export function drawDigits(count, random) {
  const images = new Float32Array(count * PIXELS);
  const targets = new Int32Array(count);
  for (let row = 0; row < count; row++) {
    const digit = Math.floor(random() * 10);
    const [top, left] = [Math.floor(random() * 3), 1 + Math.floor(random() * 3)];
    const picture = images.subarray(row * PIXELS, (row + 1) * PIXELS);
    for (let i = 0; i < PIXELS; i++) picture[i] = 0.3 * random();
    for (const [y, line] of FONT[digit].entries()) {
      for (let x = 0; x < line.length; x++) {
        const isInk = line[x] === "1" && random() > 0.05;
        if (isInk) picture[(top + y) * SIDE + left + x] = 0.7 + 0.3 * random();
      }
    }
    targets[row] = digit;
  }
  return { images, targets };
}
