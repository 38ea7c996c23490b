/**
 * Feeds out: Atom and JSON Feed, with conditional GET. Whether a feed changed is one small document that the follower
 * of changes keeps, so that the usual answer, 304, reads no post.
 */
import type { Filter } from 'mongodb';
import type { Post, Source } from '../../db/types.js';
import { HttpError, type Context, type Raw } from '../context.js';
import { addDays, shortly, weekOf } from '../dates.js';
import { escape } from '../html.js';
import { listed, type Listed } from '../posts.js';
import { questionOf, search } from '../search.js';
import { digestOf } from './digest.js';

type Format = 'atom' | 'json';

interface Entry {
  path: string;
  title: string;
  html: string;
  author: string;
  published: Date;
  updated: Date;
  tags: string[];
  link?: string;
}

interface Feed {
  title: string;
  path: string;
  page: string;
  entries: Entry[];
}

const newestFirst = { sort: { published: -1 as const }, limit: 40, projection: listed };

function entryOf(post: Listed): Entry {
  return {
    path: `/post/${encodeURIComponent(post._id)}`,
    title: post.title,
    html: post.full ? post.html : `<p>${escape(post.excerpt)}</p>`,
    author: post.author || post.sourceName,
    published: post.published,
    updated: post.edited ?? post.published,
    tags: post.tags,
    link: post.link,
  };
}

async function written(context: Context, feed: Feed, format: Format, headers: Record<string, string>): Promise<Raw> {
  const site = `http://${context.request.headers.host ?? 'localhost'}`;
  const updated = feed.entries.reduce((latest, { updated }) => (updated > latest ? updated : latest), new Date(0));
  // Loaded with the first feed that is asked for: pages do without it.
  const { generateAtomFeed, generateJsonFeed } = await import('feedsmith');
  // A reader that shows the HTML elsewhere needs whole addresses for pictures.
  const whole = (html: string) => html.replaceAll('src="/picture/', `src="${site}/picture/`);
  const body =
    format === 'atom'
      ? generateAtomFeed({
          id: `${site}${feed.path}.atom`,
          title: feed.title,
          updated,
          links: [{ href: `${site}${feed.path}.atom`, rel: 'self' }, { href: `${site}${feed.page}`, rel: 'alternate' }],
          entries: feed.entries.map((entry) => ({
            id: `${site}${entry.path}`,
            title: entry.title,
            links: [{ href: `${site}${entry.path}`, rel: 'alternate' }, ...(entry.link ? [{ href: entry.link, rel: 'via' }] : [])],
            published: entry.published,
            updated: entry.updated,
            authors: [{ name: entry.author }],
            categories: entry.tags.map((term) => ({ term })),
            content: { type: 'html', value: whole(entry.html) },
          })),
        } as never)
      : JSON.stringify(
          generateJsonFeed({
            title: feed.title,
            home_page_url: `${site}${feed.page}`,
            feed_url: `${site}${feed.path}.json`,
            items: feed.entries.map((entry) => ({
              id: `${site}${entry.path}`,
              url: `${site}${entry.path}`,
              ...(entry.link && { external_url: entry.link }),
              title: entry.title,
              content_html: whole(entry.html),
              date_published: entry.published,
              date_modified: entry.updated,
              authors: [{ name: entry.author }],
              tags: entry.tags,
            })),
          } as never),
        );
  return { kind: 'raw', type: format === 'atom' ? 'application/atom+xml; charset=utf-8' : 'application/feed+json; charset=utf-8', body: String(body), headers };
}

/** Answers from the state of the feed when the client has it already. */
async function conditional(context: Context, key: string, format: Format, make: () => Promise<Feed>): Promise<Raw> {
  const state = await context.news.feedstate.findOne({ _id: key });
  const etag = `"${format}-${state?.n ?? 0}"`;
  // HTTP dates have no milliseconds.
  const changed = new Date(Math.floor((state?.changed.getTime() ?? 0) / 1000) * 1000);
  const headers = { etag, 'last-modified': changed.toUTCString(), 'cache-control': 'public, max-age=60' };
  const { 'if-none-match': known, 'if-modified-since': since } = context.request.headers;
  // If-None-Match decides when both are there (RFC 9110, 13.2.2).
  const same = known ? known.split(/\s*,\s*/).some((tag) => tag.replace(/^W\//, '') === etag) : since ? state !== null && Date.parse(since) >= changed.getTime() : false;
  if (same) return { kind: 'raw', status: 304, type: '', body: '', headers };
  return written(context, await make(), format, headers);
}

const posts = async (context: Context, filter: Filter<Post>) => (await context.reads.find<Post>('posts', { state: 'shown', ...filter }, newestFirst)).map(entryOf);

export async function all(context: Context, [format]: string[]): Promise<Raw> {
  return conditional(context, 'all', format as Format, async () => ({ title: 'Database news', path: '/feed', page: '/', entries: await posts(context, {}) }));
}

export async function ofSource(context: Context, [id = '', format]: string[]): Promise<Raw> {
  return conditional(context, `source:${id}`, format as Format, async () => {
    const source = await context.reads.one<Source>('sources', { _id: id } as never, { projection: { name: 1 } });
    if (!source) throw new HttpError(404, 'There is no such source.');
    return { title: `Database news: ${source.name}`, path: `/source/${id}/feed`, page: `/source/${id}`, entries: await posts(context, { source: id }) };
  });
}

export async function ofTag(context: Context, [tag = '', format]: string[]): Promise<Raw> {
  const path = `/tag/${encodeURIComponent(tag)}`;
  return conditional(context, `tag:${tag}`, format as Format, async () => ({ title: `Database news: ${tag}`, path: `${path}/feed`, page: path, entries: await posts(context, { tags: tag }) }));
}

/** The digests of the last four weeks that are over. */
export async function ofDigests(context: Context, [format]: string[]): Promise<Raw> {
  return conditional(context, 'all', format as Format, async () => {
    const weeks = [1, 2, 3, 4].map((n) => weekOf(addDays(new Date(), -7 * n)));
    const digests = await Promise.all(weeks.map((week) => digestOf(context, week)));
    const entries = digests
      .filter(({ posts }) => posts > 0)
      .map(({ week, from, posts, sources }) => ({
        path: `/digest/${week}`,
        title: `The week from ${shortly(from)}: ${posts} posts`,
        html: sources.map(({ name, posts }) => `<h3>${escape(name)}</h3><ul>${posts.map(({ title }) => `<li>${escape(title)}</li>`).join('')}</ul>`).join(''),
        author: 'The editors',
        published: addDays(from, 7),
        updated: addDays(from, 7),
        tags: [],
      }));
    return { title: 'Database news: weekly digest', path: '/digest', page: '/digest', entries };
  });
}

/** A reader's own feeds: what the reader follows, has marked, or searches for. Whoever has the address reads them. */
export async function ofReader(context: Context, [token = '', what = '', format]: string[]): Promise<Raw> {
  const reader = await context.site.pools.reader.readers.findOne({ feedToken: token });
  if (!reader) throw new HttpError(404, 'There is no such feed.');
  const path = `/mine/${token}/${what}`;
  let title = 'sources you follow';
  let entries: Entry[];
  if (what === 'followed') entries = await posts(context, { source: { $in: reader.follows } });
  else if (what === 'bookmarks') {
    title = 'your bookmarks';
    entries = await posts(context, { _id: { $in: reader.bookmarks.slice(-40).map(({ post }) => post) } });
  } else {
    const saved = reader.searches.find(({ id }) => what === `search-${id}`);
    const question = saved && questionOf(new URLSearchParams(saved.query));
    if (!saved || !question || !(await context.site.searchable())) throw new HttpError(404, 'There is no such search.');
    title = saved.name;
    entries = (await search(context.reads, question, 'newest', 40)).map(entryOf);
  }
  return written(context, { title: `Database news: ${title}`, path, page: '/mine', entries }, format as Format, { 'cache-control': 'private, max-age=60' });
}
