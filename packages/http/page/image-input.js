/* An image file as a tensor. */

const CHANNELS = [1, 3, 4];

/**
 * Where height, width and channels are in a shape: [3, 224, 224] has the channels first, [224, 224, 3] last. Undefined
 * for shapes that are not those of images.
 */
export function imageLayout(shape) {
  if (shape.length < 3) return undefined;
  const [a, b, c] = shape.slice(-3);
  if (CHANNELS.includes(a)) return { channels: a, height: b, width: c, first: true };
  if (CHANNELS.includes(c)) return { channels: c, height: a, width: b, first: false };
  return undefined;
}

/** Reads an image, scales it to a layout, and returns its values from 0 to 255. */
export async function imageValues(file, { channels, height, width, first }) {
  const bitmap = await createImageBitmap(file);
  const [w, h] = [width > 0 ? width : bitmap.width, height > 0 ? height : bitmap.height];
  const canvas = document.createElement("canvas");
  canvas.width = w;
  canvas.height = h;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0, w, h);
  bitmap.close();
  const { data } = context.getImageData(0, 0, w, h);
  const pixels = w * h;
  const values = new Float64Array(pixels * channels);
  for (let pixel = 0; pixel < pixels; pixel++) {
    for (let channel = 0; channel < channels; channel++) {
      const value =
        channels === 1
          ? 0.299 * data[pixel * 4] + 0.587 * data[pixel * 4 + 1] + 0.114 * data[pixel * 4 + 2]
          : data[pixel * 4 + channel];
      values[first ? channel * pixels + pixel : pixel * channels + channel] = value;
    }
  }
  return { values, shape: first ? [channels, h, w] : [h, w, channels] };
}

/** How the values of an image become those of the model. */
export const SCALES = {
  "0 to 1": (value) => value / 255,
  "-1 to 1": (value) => value / 127.5 - 1,
  "0 to 255": (value) => value,
};
