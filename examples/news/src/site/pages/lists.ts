/** Pages that list posts: the latest, a day, a week, a source, a tag; and the lists of these. */
import type { Post, Source, SourceKind } from '../../db/types.js';
import { HttpError, type Context, type Page } from '../context.js';
import { addDays, dayOf, inWords, shortly, startOfDay, startOfWeek, weekOf } from '../dates.js';
import { html, type Html } from '../html.js';
import { newest, type PostPage, readMarks } from '../lists.js';
import { article, byDay, hostOf, type Listed, listed, titles, titleList } from '../posts.js';

const kinds: Record<SourceKind, [one: string, many: string]> = {
  researcher: ['researcher', 'Researchers'],
  project: ['project', 'Projects'],
  practitioner: ['practitioner', 'Practitioners'],
  vendor: ['vendor', 'Vendors'],
};

function older(context: Context, page: PostPage): Html | undefined {
  if (!page.older) return undefined;
  const query = new URLSearchParams(context.url.searchParams);
  query.set('before', page.older.before);
  query.set('after', page.older.after);
  return html`<nav class="pages" aria-label="Pages"><a rel="next" href="${context.url.pathname}?${query.toString()}">Older posts</a></nav>`;
}

export async function front(context: Context): Promise<Page> {
  const first = !context.url.searchParams.has('before');
  const [page, pinned] = await Promise.all([
    newest(context, {}),
    first ? context.reads.find<Post>('posts', { pinned: true, state: 'shown' }, { sort: { published: -1 }, limit: 3, projection: titles }) : [],
  ]);
  const read = await readMarks(context, page.posts);
  return {
    kind: 'page',
    title: 'Database news',
    live: first,
    main: html`<h1 class="hidden">Database news: ${first ? 'the latest posts' : 'older posts'}</h1>
${pinned.length > 0 && html`<aside class="pinned" aria-label="Pinned by the editors"><p class="byline">Pinned</p>${titleList(pinned)}</aside>`}
${page.posts.length ? byDay(page.posts, read) : html`<p>No posts yet. The fetcher is at work: they appear here by themselves.</p>`}
${older(context, page)}`,
  };
}

/** The posts from one moment to another, oldest days last. */
function between(context: Context, from: Date, to: Date, limit: number): Promise<Listed[]> {
  return context.reads.find<Post>('posts', { state: 'shown', published: { $gte: from, $lt: to } }, { sort: { published: -1 }, limit, projection: listed });
}

/** The posts next to a stretch of time: where its neighbours with posts are. */
async function neighbours(context: Context, from: Date, to: Date): Promise<[Date | undefined, Date | undefined]> {
  const [earlier, later] = await Promise.all([
    context.reads.one<Post>('posts', { state: 'shown', published: { $lt: from } }, { sort: { published: -1 }, projection: { published: 1 } }),
    context.reads.one<Post>('posts', { state: 'shown', published: { $gte: to } }, { sort: { published: 1 }, projection: { published: 1 } }),
  ]);
  return [earlier?.published, later?.published];
}

export async function day(context: Context, [name = '']: string[]): Promise<Page> {
  const from = startOfDay(name);
  if (!from) throw new HttpError(404, 'There is no such day.');
  const to = addDays(from, 1);
  const [posts, [earlier, later]] = await Promise.all([between(context, from, to, 200), neighbours(context, from, to)]);
  const read = await readMarks(context, posts);
  return {
    kind: 'page',
    title: inWords(from),
    main: html`<h1>${inWords(from)}</h1>
${posts.length ? posts.map((post) => article(post, { level: 2, read: read.has(post._id) })) : html`<p>No posts on this day.</p>`}
<nav class="pages" aria-label="Days">${earlier && html`<a rel="prev" href="/day/${dayOf(earlier)}">${inWords(earlier)}</a>`} <a href="/week/${weekOf(from)}">The whole week</a> ${later && html`<a rel="next" href="/day/${dayOf(later)}">${inWords(later)}</a>`}</nav>`,
  };
}

export async function week(context: Context, [name = '']: string[]): Promise<Page> {
  const from = startOfWeek(name);
  if (!from) throw new HttpError(404, 'There is no such week.');
  const to = addDays(from, 7);
  const [posts, [earlier, later]] = await Promise.all([between(context, from, to, 300), neighbours(context, from, to)]);
  const read = await readMarks(context, posts);
  return {
    kind: 'page',
    title: `Week ${name.slice(6)} of ${name.slice(0, 4)}`,
    main: html`<h1>Week ${Number(name.slice(6))}, ${shortly(from)} to ${shortly(addDays(from, 6))}</h1>
<p class="lead"><a href="/digest/${name}">The digest of this week</a></p>
${posts.length ? byDay(posts, read) : html`<p>No posts in this week.</p>`}
<nav class="pages" aria-label="Weeks">${earlier && html`<a rel="prev" href="/week/${weekOf(earlier)}">Week ${weekOf(earlier).slice(6)}</a>`} ${later && html`<a rel="next" href="/week/${weekOf(later)}">Week ${weekOf(later).slice(6)}</a>`}</nav>`,
  };
}

export async function archive(context: Context): Promise<Page> {
  const days = await context.reads.aggregate<{ _id: Date; n: number }>('posts', [
    { $match: { state: 'shown' } },
    { $group: { _id: { $dateTrunc: { date: '$published', unit: 'day' } }, n: { $sum: 1 } } },
    { $sort: { _id: -1 } },
  ]);
  const months = new Map<string, { _id: Date; n: number }[]>();
  for (const one of days) {
    const month = dayOf(one._id).slice(0, 7);
    months.set(month, [...(months.get(month) ?? []), one]);
  }
  const name = (month: string) => new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' }).format(new Date(`${month}-01`));
  return {
    kind: 'page',
    title: 'Archive',
    main: html`<h1>Archive</h1>
<p class="lead">${days.reduce((sum, { n }) => sum + n, 0)} posts on ${days.length} days. The number beside a day is how many posts it had.</p>
${[...months].map(([month, list]) => html`<section><h2>${name(month)}</h2><ol class="days">${list.reverse().map(({ _id, n }) => html`<li><a href="/day/${dayOf(_id)}">${_id.getUTCDate()}<span class="hidden"> ${name(month)},</span> <small>${n}<span class="hidden"> posts</span></small></a></li>`)}</ol></section>`)}`,
  };
}

export async function sources(context: Context): Promise<Page> {
  const list = await context.reads.find<Source>('sources', {}, { sort: { name: 1 }, projection: { name: 1, home: 1, kind: 1, why: 1, authors: 1, lang: 1, state: 1 } });
  return {
    kind: 'page',
    title: 'Sources',
    main: html`<h1>Sources</h1>
<p class="lead">Who is on the list, and why. Missing somebody? Tell the editors.</p>
${(Object.keys(kinds) as SourceKind[]).map((kind) => {
  const of = list.filter((source) => source.kind === kind);
  return of.length > 0 && html`<section><h2>${kinds[kind][1]}</h2><dl class="sources">${of.map((source) => html`<dt><a href="/source/${source._id}" dir="auto">${source.name}</a>${source.lang !== 'en' && html` <small>${source.lang}</small>`}${source.state === 'paused' && html` <small>paused</small>`}</dt><dd lang="${source.lang}" dir="auto">${source.why} <small>${source.authors.join(', ')}</small></dd>`)}</dl></section>`;
})}`,
  };
}

export async function source(context: Context, [id = '']: string[]): Promise<Page> {
  const [found, page] = await Promise.all([
    context.reads.one<Source>('sources', { _id: id } as never, { projection: { 'fetch.history': 0 } }),
    newest(context, { source: id }),
  ]);
  if (!found) throw new HttpError(404, 'There is no such source.');
  const [read, reader] = await Promise.all([readMarks(context, page.posts), context.reader()]);
  const follows = reader?.follows.includes(id);
  return {
    kind: 'page',
    title: found.name,
    feeds: [{ title: found.name, href: `/source/${id}/feed.atom` }],
    main: html`<h1 dir="auto">${found.name}</h1>
<p class="lead" dir="auto">${found.why}</p>
<p class="byline">${kinds[found.kind][0]} · <bdi>${found.authors.join(', ')}</bdi> · <a href="${found.home}" rel="noreferrer">${hostOf(found.home)}</a> · ${found.full ? 'in full' : 'as excerpts'} · <a href="/source/${id}/feed.atom">feed</a>${context.may('editor') ? html` · <a href="/desk/source/${id}">at the desk</a>` : ''}</p>
${context.user && html`<form method="post" action="/mine/follow"><input type="hidden" name="source" value="${id}"><button name="do" value="${follows ? 'drop' : 'add'}">${follows ? 'Stop following' : 'Follow'}</button></form>`}
${page.posts.map((post) => article(post, { level: 2, withDay: true, read: read.has(post._id) }))}
${older(context, page)}`,
  };
}

export async function tags(context: Context): Promise<Page> {
  const list = await context.reads.aggregate<{ _id: string; n: number }>('posts', [
    { $match: { state: 'shown' } },
    { $unwind: '$tags' },
    { $sortByCount: '$tags' },
    { $match: { count: { $gte: 2 } } },
    { $limit: 200 },
    { $project: { n: '$count' } },
    { $sort: { _id: 1 } },
  ]);
  return {
    kind: 'page',
    title: 'Tags',
    main: html`<h1>Tags</h1>
<ul class="tags">${list.map(({ _id, n }) => html`<li><a href="/tag/${encodeURIComponent(_id)}" dir="auto">${_id}</a> <small>${n}</small></li>`)}</ul>`,
  };
}

export async function tag(context: Context, [name = '']: string[]): Promise<Page> {
  const page = await newest(context, { tags: name });
  if (!page.posts.length) throw new HttpError(404, 'No post has this tag.');
  const read = await readMarks(context, page.posts);
  return {
    kind: 'page',
    title: name,
    feeds: [{ title: name, href: `/tag/${encodeURIComponent(name)}/feed.atom` }],
    main: html`<h1 dir="auto">${name}</h1>
${page.posts.map((post) => article(post, { level: 2, withDay: true, read: read.has(post._id) }))}
${older(context, page)}`,
  };
}
