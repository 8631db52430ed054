/*
 * Tails of latencies, of two cases that differ little. Short blocks of both take turns, with requests at the same times
 * in both blocks of a pair, so that other work on the machine and the chance of the arrivals affect both alike.
 */
import { performance } from "node:perf_hooks";
import { short } from "./pairs.mjs";

/** Random numbers from 0 to 1: mulberry32. */
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Calls a function at random times, which a seed fixes.
 *
 * @param rate calls in a second
 * @returns how long each call took, in ms
 */
export async function timesOf(call, { rate, seconds, seed }) {
  const random = randomNumbers(seed);
  const times = [];
  const open = new Set();
  const begin = performance.now();
  for (let due = 0; due < seconds * 1000; due += (-Math.log(1 - random()) * 1000) / rate) {
    const wait = begin + due - performance.now();
    if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait));
    const since = performance.now();
    const one = call().then(() => {
      times.push(performance.now() - since);
      open.delete(one);
    });
    open.add(one);
  }
  await Promise.all(open);
  return times;
}

/**
 * Measures blocks in turns: A B, B A, A B ...
 *
 * @param ours measures a block with the seed that it gets, and returns `{ times }`
 */
export async function runBlocks(ours, reference, pairs) {
  await ours(0);
  await reference(0);
  const runs = { ours: [], reference: [] };
  for (let pair = 1; pair <= pairs; pair++) {
    const turns = [
      ["ours", ours],
      ["reference", reference],
    ];
    if (pair % 2 === 0) turns.reverse();
    for (const [side, run] of turns) runs[side].push(await run(pair));
  }
  return runs;
}

/**
 * Ratio of a percentile of all blocks, with its 95% interval: pairs of blocks are drawn again and again, each as often
 * as chance has it.
 */
export function tailRatio(runs, percent, draws = 1000) {
  const sides = ["ours", "reference"].map((side) =>
    runs[side].flatMap(({ times }, block) => times.map((time) => [time, block])).sort(([a], [b]) => b - a),
  );
  const sizes = ["ours", "reference"].map((side) => runs[side].map(({ times }) => times.length));
  const tails = (counts) =>
    sides.map((all, side) => {
      const total = sizes[side].reduce((sum, size, block) => sum + size * counts[block], 0);
      let left = total * (1 - percent / 100);
      return all.find(([, block]) => {
        left -= counts[block];
        return left < 0;
      })[0];
    });
  const random = randomNumbers(1);
  const pairs = runs.ours.length;
  const ratios = Array.from({ length: draws }, () => {
    const counts = new Uint16Array(pairs);
    for (let i = 0; i < pairs; i++) counts[Math.floor(random() * pairs)]++;
    const [ours, reference] = tails(counts);
    return ours / reference;
  }).sort((a, b) => a - b);
  const [ours, reference] = tails(new Uint16Array(pairs).fill(1));
  return {
    ours: short(ours),
    reference: short(reference),
    ratio: short(ours / reference),
    least: short(ratios[Math.floor(0.025 * draws)]),
    most: short(ratios[Math.floor(0.975 * draws)]),
  };
}
