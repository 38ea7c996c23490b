/** RSS 0.9x to 2.0, RDF, Atom and JSON Feed, by feedsmith, to one form. Nothing here is safe HTML yet. */
import { parseFeed } from 'feedsmith';

export interface Item {
  id?: string;
  link?: string;
  title: string;
  author: string;
  published?: string;
  updated?: string;
  html: string;
  /** What relative links start from. */
  base: string;
  tags: string[];
}

/** More than this many items of one feed are not looked at: newest come first in practice. */
export const maxItems = 1000;

// biome-ignore lint: the library's types differ by format, and every field may be absent in a broken feed.
type Any = any;

/** Parses a feed that was fetched from `url`. Throws when it is none. */
export function parse(text: string, url: string): Item[] {
  const { format, feed } = parseFeed(repaired(text)) as { format: string; feed: Any };
  const list: Any[] = (format === 'atom' ? feed.entries : feed.items) ?? [];
  const home = absolute(feed.home_page_url ?? feed.link ?? alternate(feed.links), url) ?? url;
  return list.slice(0, maxItems).map((item) => (format === 'atom' ? atom(item, feed, url) : format === 'json' ? json(item, home) : rss(item, home)));
}

/** Bytes before the XML declaration and bare control characters are common faults that no parser need fail at. */
function repaired(text: string): string {
  // biome-ignore lint: control characters are what this removes.
  return text.replace(/^[\s\uFEFF]+/, '').replace(/[\u0000-\u0008\u000B\u000C\u000E-\u001F]/g, '');
}

function rss(item: Any, home: string): Item {
  const link = item.link ?? (item.guid && item.guid.isPermaLink !== false && /^https?:/.test(item.guid.value ?? '') ? item.guid.value : undefined);
  const base = absolute(link, home) ?? home;
  const html = item.content?.encoded ?? item.description ?? '';
  return {
    id: item.guid?.value ?? item.rdf?.about,
    link: absolute(link, home),
    title: text(item.title),
    author: person(item.dc?.creators?.[0] ?? item.dc?.creator ?? item.authors?.[0]),
    published: item.pubDate ?? item.dc?.dates?.[0] ?? item.dc?.date,
    updated: item.dcterms?.modified?.[0] ?? item.atom?.updated,
    html: String(html),
    base,
    tags: [...(item.categories ?? []).map((c: Any) => c.name), ...(item.dc?.subjects ?? [])].filter((tag) => typeof tag === 'string'),
  };
}

function atom(entry: Any, feed: Any, url: string): Item {
  const feedBase = absolute(feed.xml?.base, url) ?? url;
  const entryBase = absolute(entry.xml?.base, feedBase) ?? feedBase;
  const link = absolute(alternate(entry.links), entryBase);
  const content = entry.content ?? entry.summary;
  const contentBase = absolute(content?.xml?.base, entryBase) ?? (entry.xml?.base || feed.xml?.base ? entryBase : (link ?? entryBase));
  return {
    id: entry.id,
    link,
    title: atomText(entry.title),
    author: person(entry.authors?.[0] ?? feed.authors?.[0]),
    published: entry.published,
    updated: entry.updated,
    html: content?.type === 'html' || content?.type === 'xhtml' ? String(content.value ?? '') : paragraphs(String(content?.value ?? content ?? '')),
    base: contentBase,
    tags: (entry.categories ?? []).map((c: Any) => c.label ?? c.term).filter((tag: Any) => typeof tag === 'string'),
  };
}

function json(item: Any, home: string): Item {
  const link = absolute(item.url ?? item.external_url, home);
  return {
    id: item.id,
    link,
    title: text(item.title),
    author: person(item.authors?.[0] ?? item.author),
    published: item.date_published,
    updated: item.date_modified,
    html: item.content_html ?? paragraphs(item.content_text ?? item.summary ?? ''),
    base: link ?? home,
    tags: (item.tags ?? []).filter((tag: Any) => typeof tag === 'string'),
  };
}

function absolute(address: Any, base: string): string | undefined {
  if (typeof address !== 'string' || !address.trim() || !URL.canParse(address.trim(), base)) return undefined;
  const url = new URL(address.trim(), base);
  return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : undefined;
}

function alternate(links: Any): Any {
  if (!Array.isArray(links)) return undefined;
  return (links.find((l) => !l.rel || l.rel === 'alternate') ?? links.find((l) => l.rel !== 'self'))?.href;
}

function text(value: Any): string {
  return typeof value === 'string' ? value : typeof value?.value === 'string' ? value.value : '';
}

/** A title of type html is markup; of type text it is what it says, so its angle brackets are characters. */
function atomText(value: Any): string {
  return value?.type === 'html' || value?.type === 'xhtml' ? text(value) : text(value).replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

function person(value: Any): string {
  const said = typeof value === 'string' ? value : (value?.name ?? value?.email ?? '');
  // RSS has `address (name)`.
  return String(/^\S+@\S+\s+\((.+)\)$/.exec(said)?.[1] ?? said).trim();
}

function paragraphs(plain: string): string {
  const escaped = plain.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return escaped.split(/\n{2,}/).map((part) => `<p>${part.replaceAll('\n', '<br>')}</p>`).join('');
}
