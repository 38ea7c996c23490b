/**
 * Near-same texts (Broder, "On the resemblance and containment of documents", 1997). A text is the set of its runs of
 * three words; two texts are near-same when they share most of them. MinHash finds candidates by an index: of each text
 * eight bands are kept, and near-same texts have a band in common with a chance of 99 in 100.
 */
import { createHash } from 'node:crypto';

/** Texts of fewer words are too short to tell: they are the same only when they are equal. */
export const fewWords = 25;

/** The part of their runs that near-same texts share at least. */
export const near = 0.75;

const bandCount = 8;
const rows = 3;

export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

function runsOf(words: string[]): Set<string> {
  const runs = new Set<string>();
  for (let i = 0; i + 3 <= Math.min(words.length, 5000); i++) runs.add(`${words[i]} ${words[i + 1]} ${words[i + 2]}`);
  return runs;
}

/** FNV-1a. */
function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}

/** One of a family of hash functions: the n-th multiplies and mixes in its own way. */
function rehash(h: number, n: number): number {
  let x = Math.imul(h ^ Math.imul(n + 1, 0x9e3779b1), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

/** The bands of a text, to be indexed. Of a short text a single one: its words. */
export function bandsOf(text: string): string[] {
  const words = wordsOf(text);
  if (words.length < fewWords) return [`s${createHash('sha256').update(words.join(' ')).digest('hex').slice(0, 16)}`];
  const least = new Uint32Array(bandCount * rows).fill(0xffffffff);
  for (const run of runsOf(words)) {
    const h = hash(run);
    for (let n = 0; n < least.length; n++) {
      const other = rehash(h, n);
      if (other < (least[n] as number)) least[n] = other;
    }
  }
  return Array.from({ length: bandCount }, (_none, band) => {
    const part = least.subarray(band * rows, (band + 1) * rows);
    return `${band}${hash(part.join(' ')).toString(16).padStart(8, '0')}`;
  });
}

/** Which part of the runs of either text both have: 1 for the same text, 0 for nothing in common. */
export function resemblance(a: string, b: string): number {
  const [ours, theirs] = [runsOf(wordsOf(a)), runsOf(wordsOf(b))];
  if (!ours.size || !theirs.size) return a === b ? 1 : 0;
  let shared = 0;
  for (const run of ours) if (theirs.has(run)) shared++;
  return shared / (ours.size + theirs.size - shared);
}
