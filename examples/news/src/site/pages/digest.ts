/** The weekly digest: a page, a text to mail, and a feed. One pipeline makes it. */
import type { Post } from '../../db/types.js';
import { HttpError, type Context, type Page, type Raw } from '../context.js';
import { addDays, shortly, startOfWeek, weekOf } from '../dates.js';
import { html } from '../html.js';

export interface Digest {
  week: string;
  from: Date;
  posts: number;
  /** Posts by source, sources with most posts first. */
  sources: { _id: string; name: string; posts: Pick<Post, '_id' | 'title' | 'author' | 'published' | 'excerpt' | 'pinned' | 'lang'>[] }[];
  /** Tags of the week. */
  tags: { _id: string; n: number }[];
}

export async function digestOf(context: Context, week: string): Promise<Digest> {
  const from = startOfWeek(week);
  if (!from) throw new HttpError(404, 'There is no such week.');
  const [parts] = await context.reads.aggregate<{ sources: Digest['sources']; tags: Digest['tags'] }>('posts', [
    { $match: { state: 'shown', published: { $gte: from, $lt: addDays(from, 7) } } },
    {
      $facet: {
        sources: [
          { $sort: { pinned: -1, published: -1 } },
          { $group: { _id: '$source', name: { $first: '$sourceName' }, posts: { $push: { _id: '$_id', title: '$title', author: '$author', published: '$published', excerpt: '$excerpt', pinned: '$pinned', lang: '$lang' } } } },
          { $set: { n: { $size: '$posts' } } },
          { $sort: { n: -1, _id: 1 } },
        ],
        tags: [{ $unwind: '$tags' }, { $sortByCount: '$tags' }, { $limit: 8 }, { $project: { n: '$count' } }],
      },
    },
  ]);
  const sources = parts?.sources ?? [];
  return { week, from, sources, tags: parts?.tags ?? [], posts: sources.reduce((sum, { posts }) => sum + posts.length, 0) };
}

const firstWords = (text: string) => {
  const words = text.replace(/ \[…\]$/, '').split(' ');
  return words.length > 24 ? `${words.slice(0, 24).join(' ')} […]` : text;
};

export async function digest(context: Context, [week = '']: string[]): Promise<Page> {
  const { from, posts, sources, tags } = await digestOf(context, week);
  return {
    kind: 'page',
    title: `Digest of week ${week.slice(6)}, ${week.slice(0, 4)}`,
    feeds: [{ title: 'Weekly digest', href: '/digest.atom' }],
    main: html`<h1>The week from ${shortly(from)}</h1>
<p class="lead">${posts} posts from ${sources.length} sources${tags.length > 0 && html`, on ${tags.map(({ _id }, i) => html`${i ? ', ' : ''}<a href="/tag/${encodeURIComponent(_id)}">${_id}</a>`)}`}. <a href="/digest/${week}.txt">As plain text</a>, <a href="/digest.atom">as a feed</a>.</p>
${sources.map((source) => html`<section class="digest"><h2><a href="/source/${source._id}">${source.name}</a></h2><ul>${source.posts.map((post) => html`<li lang="${post.lang}"><a href="/post/${post._id}" dir="auto">${post.title}</a>${post.pinned && html` <small lang="en">pinned</small>`}<br><span dir="auto">${firstWords(post.excerpt)}</span></li>`)}</ul></section>`)}`,
  };
}

export async function digestText(context: Context, [week = '']: string[]): Promise<Raw> {
  const { from, posts, sources } = await digestOf(context, week);
  const host = context.request.headers.host ?? 'localhost';
  const lines = [`DATABASE NEWS: THE WEEK FROM ${shortly(from).toUpperCase()}`, `${posts} posts from ${sources.length} sources`, ''];
  for (const source of sources) {
    lines.push(source.name, '-'.repeat(source.name.length), '');
    for (const post of source.posts) lines.push(`* ${post.title}`, ...wrapped(firstWords(post.excerpt)), `  http://${host}/post/${encodeURIComponent(post._id)}`, '');
  }
  return { kind: 'raw', type: 'text/plain; charset=utf-8', body: `${lines.join('\n')}\n` };
}

function wrapped(text: string): string[] {
  const lines: string[] = [];
  let line = ' ';
  for (const word of text.split(' ')) {
    if (line.length + word.length > 72) {
      lines.push(line);
      line = ' ';
    }
    line += ` ${word}`;
  }
  return [...lines, line];
}

export async function digests(context: Context): Promise<Page> {
  const weeks = await context.reads.aggregate<{ _id: Date; n: number; sources: string[] }>('posts', [
    { $match: { state: 'shown' } },
    { $group: { _id: { $dateTrunc: { date: '$published', unit: 'week', startOfWeek: 'monday' } }, n: { $sum: 1 }, sources: { $addToSet: '$source' } } },
    { $sort: { _id: -1 } },
    { $limit: 60 },
  ]);
  return {
    kind: 'page',
    title: 'Weekly digest',
    feeds: [{ title: 'Weekly digest', href: '/digest.atom' }],
    main: html`<h1>Weekly digest</h1>
<p class="lead">A week on one page. <a href="/digest.atom">Also as a feed.</a></p>
<ul class="weeks">${weeks.map(({ _id, n, sources }) => html`<li><a href="/digest/${weekOf(_id)}">Week from ${shortly(_id)}</a> <small>${n} ${n === 1 ? 'post' : 'posts'} from ${sources.length} ${sources.length === 1 ? 'source' : 'sources'}</small></li>`)}</ul>`,
  };
}
