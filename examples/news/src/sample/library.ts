/**
 * The sample sources and their posts, read from `feeds/*.txt`. Dates come from a post's place in its file: a year's
 * worth, at times that look like somebody's habits, always the same for the same last day.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { SourceKind } from '../db/types.js';

const folder = new URL('../../feeds/', import.meta.url);
const dayMs = 24 * 3600_000;

export interface SamplePost {
  id: string;
  title: string;
  tags: string[];
  author: string;
  text: string;
  published: Date;
}

export interface SampleSource {
  id: string;
  name: string;
  kind: SourceKind;
  why: string;
  authors: string[];
  lang: string;
  tags: string[];
  full: boolean;
  review: boolean;
  /** Which writer of `formats.ts` writes its feed. */
  format: string;
  /** Oldest first. */
  posts: SamplePost[];
}

/** A number from 0 to 1 that hangs on nothing but the words. */
export function chance(words: string): number {
  return createHash('sha256').update(words).digest().readUInt32BE(0) / 2 ** 32;
}

function header(text: string): Record<string, string> {
  return Object.fromEntries(text.split('\n').map((line) => [line.slice(0, line.indexOf(':')).trim(), line.slice(line.indexOf(':') + 1).trim()]));
}

const list = (text = '') => text.split(',').map((one) => one.trim()).filter(Boolean);

/** Reads the library; its newest posts are of `today`. */
export function library(today: Date): SampleSource[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.txt'))
    .sort()
    .map((name) => read(name.slice(0, -4), readFileSync(new URL(name, folder), 'utf8'), today));
}

function read(id: string, file: string, today: Date): SampleSource {
  const [head = '', ...parts] = file.trim().split(/\n== /);
  const fields = header(head.trim());
  const authors = list(fields.authors);
  const midnight = Math.floor(today.getTime() / dayMs) * dayMs;
  const posts = parts.map((part, i): SamplePost => {
    const [first = '', ...rest] = part.split('\n');
    const [title = '', tags = ''] = first.split(' :: ');
    // Spread over the year, up to a third of the usual pause early or late, mostly in the morning.
    const place = (i + 0.5 + (chance(`${id}${i}`) - 0.5) / 1.5) / parts.length;
    const day = Math.min(364, Math.floor(place * 365));
    const minute = 6 * 60 + Math.floor(chance(`${title}${id}`) * 9 * 60);
    const at = midnight - (364 - day) * dayMs + minute * 60_000;
    return {
      id: `${id}-${i + 1}`,
      title: title.trim(),
      tags: list(tags),
      author: authors[Math.floor(chance(`${id} ${i} author`) * authors.length)] ?? '',
      text: rest.join('\n').trim(),
      published: new Date(Math.min(at, today.getTime() - 60_000 * (i % 60))),
    };
  });
  return {
    id,
    name: fields.name ?? id,
    kind: fields.kind as SourceKind,
    why: fields.why ?? '',
    authors,
    lang: fields.lang ?? 'en',
    tags: list(fields.tags),
    full: fields.full !== 'no',
    review: fields.review === 'yes',
    format: fields.format ?? 'rss2',
    posts,
  };
}
