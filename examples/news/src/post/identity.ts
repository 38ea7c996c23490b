/**
 * By what a post is recognized: its link, and its identifier within its source. Two posts never have a key in common
 * (a unique index sees to it), so a post that comes twice, or from two fetchers at once, is one.
 */
import { createHash } from 'node:crypto';
import type { Item } from '../fetch/parse.js';

/** The link without what does not tell pages apart: scheme, `www.`, fragments, campaign parameters, a last slash. */
export function normalLink(link: string): string {
  const url = new URL(link);
  for (const name of [...url.searchParams.keys()]) if (/^(utm_\w+|fbclid|gclid|ref|source|mc_[ce]id)$/.test(name)) url.searchParams.delete(name);
  url.searchParams.sort();
  return `${url.host.replace(/^www\./, '')}${url.pathname.replace(/\/+$/, '')}${url.search}`;
}

/** An index entry has to stay short; long identifiers are told by their digest. */
function bounded(key: string): string {
  return key.length <= 300 ? key : `${key.slice(0, 200)}#${createHash('sha256').update(key).digest('hex').slice(0, 32)}`;
}

/** The keys of each item of a feed, the one that decides first. */
export function keysOf(source: string, items: Item[]): string[][] {
  const keys = items.map((item) => {
    const own: string[] = [];
    if (item.link) own.push(bounded(`link:${normalLink(item.link)}`));
    if (item.id) own.push(bounded(`id:${source}:${item.id}`));
    return own;
  });
  // A key that posts of different titles share tells nothing: feeds whose every item links to the home page.
  const titles = new Map<string, Set<string>>();
  keys.forEach((own, i) => {
    for (const key of own) titles.set(key, (titles.get(key) ?? new Set()).add((items[i] as Item).title.trim().toLowerCase()));
  });
  return keys.map((own, i) => {
    const telling = own.filter((key) => titles.get(key)?.size === 1);
    if (telling.length) return telling;
    const item = items[i] as Item;
    return [`text:${source}:${createHash('sha256').update(`${item.title}\n${item.published ?? ''}`).digest('hex').slice(0, 32)}`];
  });
}

/** The name in the permanent address: words of the title, and six digits of the first key's digest. */
export function slugOf(title: string, key: string): string {
  const words = title
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .split(/[^\p{Ll}\p{Lo}\p{N}]+/u)
    .filter(Boolean);
  let slug = '';
  for (const word of words) {
    if (slug.length + word.length > 60) break;
    slug += `${word}-`;
  }
  return slug + createHash('sha256').update(key).digest('hex').slice(0, 8);
}
