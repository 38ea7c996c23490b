/**
 * Search by the text index. This module alone knows how: it makes the index, asks it and highlights what was found.
 * On a server without text indexes the site says so.
 */
import { type Db, type Document, type Filter } from 'mongodb';
import { isUnsupported } from '../db/collections.js';
import type { News } from '../db/connect.js';
import type { Reads } from '../db/reads.js';
import { escape, Html, html } from './html.js';
import { listed, type Listed } from './posts.js';

/** A word in a title counts ten times what it counts in the text. */
const weights = { title: 10, tags: 6, author: 4, text: 1 };

export async function setUpSearch(db: Db): Promise<void> {
  try {
    await db.collection('posts').createIndex(
      { title: 'text', tags: 'text', author: 'text', text: 'text' },
      { name: 'words', weights, default_language: 'english', language_override: 'textLanguage' },
    );
  } catch (error) {
    if (!isUnsupported(error)) throw error;
    console.log('this server has no text indexes: the site is without search');
  }
}

export async function searchIsThere(news: News): Promise<boolean> {
  return (await news.posts.indexes()).some((index) => index.name === 'words');
}

export interface Question {
  words: string;
  source?: string;
  tag?: string;
  from?: Date;
  to?: Date;
}

/** The question that a search page's address asks; undefined when it asks for nothing. */
export function questionOf(query: URLSearchParams): Question | undefined {
  const words = (query.get('q') ?? '').trim().slice(0, 300);
  if (!words) return undefined;
  const date = (name: string) => {
    const at = Date.parse(query.get(name) ?? '');
    return Number.isNaN(at) ? undefined : new Date(at);
  };
  const to = date('to');
  return {
    words,
    source: query.get('source') || undefined,
    tag: query.get('tag') || undefined,
    from: date('from'),
    // The day named last belongs to the time asked for.
    to: to && new Date(to.getTime() + 24 * 3600_000),
  } as Question;
}

export interface Hit extends Listed {
  text: string;
  score: number;
}

/** The posts that a question finds: the best first, or the newest first for feeds. */
export async function search(reads: Reads, question: Question, order: 'best' | 'newest', limit = 30): Promise<Hit[]> {
  const { words, source, tag, from, to } = question;
  const filter: Document = {
    $text: { $search: words },
    state: 'shown',
    ...(source && { source }),
    ...(tag && { tags: tag }),
    ...((from || to) && { published: { ...(from && { $gte: from }), ...(to && { $lt: to }) } }),
  };
  return reads.find<Hit>('posts', filter as Filter<Hit>, {
    projection: { ...listed, text: 1, score: { $meta: 'textScore' } },
    sort: order === 'best' ? { score: { $meta: 'textScore' } } : { published: -1 },
    limit,
  });
}

/** Words by their stems, roughly: the index has found them already, this only colours them. */
function stem(word: string): string {
  const small = word.toLowerCase();
  return small.length > 4 ? small.replace(/(?:ization|ations?|ingly|ings?|ness|ments?|edly|ies|ied|ers?|ed|es|s|y|e)$/u, '') : small;
}

/** The words of a question that hits may have: phrases are taken apart, words after a minus left out. */
export function stemsOf(words: string): Set<string> {
  const wanted = words.replace(/(^|\s)-("[^"]*"|\S+)/g, ' ');
  return new Set((wanted.match(/[\p{L}\p{N}]+/gu) ?? []).map(stem));
}

/** The text with its hits marked. */
export function highlight(text: string, stems: Set<string>): Html {
  let marked = '';
  let at = 0;
  for (const match of text.matchAll(/[\p{L}\p{N}]+/gu)) {
    if (!stems.has(stem(match[0]))) continue;
    marked += `${escape(text.slice(at, match.index))}<mark>${escape(match[0])}</mark>`;
    at = match.index + match[0].length;
  }
  return new Html(marked + escape(text.slice(at)));
}

/** The part of a text around its hits: where most of them stand close together. */
export function snippet(text: string, stems: Set<string>, length = 320): Html {
  const hits = [...text.matchAll(/[\p{L}\p{N}]+/gu)].filter((match) => stems.has(stem(match[0]))).map((match) => match.index);
  let best = 0;
  let most = -1;
  for (const [i, start] of hits.entries()) {
    const inside = hits.slice(i).findIndex((at) => at > start + length - 40);
    const count = inside < 0 ? hits.length - i : inside;
    if (count > most) [best, most] = [start, count];
  }
  let begin = Math.max(0, best - 60);
  if (begin > 0) begin = text.indexOf(' ', begin) + 1 || begin;
  let end = Math.min(text.length, begin + length);
  if (end < text.length) end = Math.max(text.lastIndexOf(' ', end), begin + length / 2);
  return html`<p>${begin > 0 ? '[…] ' : ''}${highlight(text.slice(begin, end), stems)}${end < text.length ? ' […]' : ''}</p>`;
}
