/**
 * Fingerprints of texts (SimHash: Charikar, "Similarity estimation techniques from rounding algorithms", 2002). Each
 * run of three words votes on each of 64 bits; texts that share most of their runs differ in few bits.
 */
import { createHash } from 'node:crypto';

/** Bits in which near-same texts may differ. With four bands at least one is then equal, and an index finds it. */
export const near = 3;

/** Texts of fewer words are too short to tell: they are the same only when they are equal. */
export const fewWords = 25;

export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

export function fingerprint(text: string): string {
  const words = wordsOf(text).slice(0, 5000);
  if (words.length < fewWords) return createHash('sha256').update(words.join(' ')).digest('hex').slice(0, 16);
  const votes = new Int32Array(64);
  for (let i = 0; i + 3 <= words.length; i++) {
    const hash = createHash('md5').update(`${words[i]} ${words[i + 1]} ${words[i + 2]}`).digest();
    for (let bit = 0; bit < 64; bit++) votes[bit] = (votes[bit] as number) + ((hash[bit >> 3] as number) & (1 << (bit & 7)) ? 1 : -1);
  }
  let hex = '';
  for (let nibble = 0; nibble < 16; nibble++) {
    let value = 0;
    for (let bit = 0; bit < 4; bit++) value = (value << 1) | ((votes[nibble * 4 + bit] as number) > 0 ? 1 : 0);
    hex += value.toString(16);
  }
  return hex;
}

export function bandsOf(print: string): string[] {
  return [0, 1, 2, 3].map((n) => `${n}${print.slice(n * 4, n * 4 + 4)}`);
}

/** In how many bits two fingerprints differ. */
export function distance(a: string, b: string): number {
  let differing = BigInt(`0x${a}`) ^ BigInt(`0x${b}`);
  let count = 0;
  for (; differing; differing &= differing - 1n) count++;
  return count;
}
