/** What readers keep: bookmarks, read marks, followed sources, saved searches. Forms work without scripts. */
import { randomBytes } from 'node:crypto';
import type { Post, Source } from '../db/types.js';
import { HttpError, type Context, type Page, type Redirect } from '../site/context.js';
import { html } from '../site/html.js';
import { newest, readMarks } from '../site/lists.js';
import { article, titleList, titles } from '../site/posts.js';
import { markRead as mark } from '../site/pages/post.js';

/** The user's own document; people made by an administrator have none before they come here. */
async function own(context: Context) {
  const found = await context.reader();
  if (found || !context.user) return found;
  const fresh = { _id: context.user.name, email: `${context.user.name}@news.example`, joined: new Date(), follows: [], bookmarks: [], searches: [], feedToken: randomBytes(18).toString('base64url') };
  await context.site.pools.door.readers.insertOne(fresh);
  return fresh;
}

export async function mine(context: Context): Promise<Page> {
  const reader = await own(context);
  if (!reader) throw new HttpError(404, 'There is no such reader.');
  const marked = reader.bookmarks.map(({ post }) => post);
  const [followed, bookmarks, sources] = await Promise.all([
    reader.follows.length ? newest(context, { source: { $in: reader.follows } }, 15) : { posts: [], older: undefined },
    context.reads.find<Post>('posts', { _id: { $in: marked } } as never, { projection: titles }),
    context.reads.find<Source>('sources', { _id: { $in: reader.follows } } as never, { projection: { name: 1 } }),
  ]);
  const read = await readMarks(context, followed.posts);
  bookmarks.sort((a, b) => marked.indexOf(b._id) - marked.indexOf(a._id));
  const feed = (what: string) => html`<a href="/mine/${reader.feedToken}/${what}.atom">Atom</a>, <a href="/mine/${reader.feedToken}/${what}.json">JSON</a>`;
  return {
    kind: 'page',
    title: 'Mine',
    unlisted: true,
    main: html`<h1>Mine</h1>
<p class="lead">Kept for ${reader._id}, ${reader.email}. The feeds below are yours: whoever has their addresses can read them.</p>
<section><h2>Bookmarks</h2>${bookmarks.length ? html`${titleList(bookmarks)}<p class="byline">As a feed: ${feed('bookmarks')}</p>` : html`<p>None yet. Each post's page has a button.</p>`}</section>
<section><h2>Saved searches</h2>${reader.searches.length ? html`<ul class="titles">${reader.searches.map((search) => html`<li><a href="/search?${search.query}">${search.name}</a> <span class="byline">${feed(`search-${search.id}`)} <form class="inline" method="post" action="/mine/search/drop"><button class="plain" name="id" value="${search.id}">drop</button></form></span></li>`)}</ul>` : html`<p>None yet. The search page keeps a search.</p>`}</section>
<section><h2>Followed sources</h2>${sources.length ? html`<p class="byline">${sources.map(({ _id, name }, i) => html`${i ? ', ' : ''}<a href="/source/${_id}">${name}</a>`)} · as a feed: ${feed('followed')}</p>
${followed.posts.map((post) => article(post, { withDay: true, read: read.has(post._id) }))}` : html`<p>None yet. Each source's page has a button.</p>`}</section>`,
  };
}

function back(context: Context, fallback: string): Redirect {
  return { kind: 'redirect', to: fallback || context.url.pathname };
}

function field(context: Context, name: string, longest = 120): string {
  const value = context.form.get(name)?.trim() ?? '';
  if (!value || value.length > longest) throw new HttpError(400, `The form has no ${name}.`);
  return value;
}

const readers = (context: Context) => context.site.pools.reader.readers;
const me = (context: Context) => ({ _id: context.user?.name ?? '' });

export async function bookmark(context: Context): Promise<Redirect> {
  await own(context);
  const post = field(context, 'post');
  await readers(context).updateOne(me(context), { $pull: { bookmarks: { post } } });
  if (context.form.get('do') !== 'drop') {
    if (!(await context.news.posts.findOne({ _id: post }, { projection: { _id: 1 } }))) throw new HttpError(404, 'There is no such post.');
    await readers(context).updateOne(me(context), { $push: { bookmarks: { post, at: new Date() } } });
  }
  return back(context, `/post/${encodeURIComponent(post)}`);
}

export async function markRead(context: Context): Promise<Redirect> {
  const post = field(context, 'post');
  if (context.form.get('do') === 'unread') await context.site.pools.reader.reads.deleteOne({ _id: { reader: context.user?.name ?? '', post } });
  else await mark(context, post);
  return back(context, '/');
}

export async function follow(context: Context): Promise<Redirect> {
  await own(context);
  const source = field(context, 'source');
  const drop = context.form.get('do') === 'drop';
  if (!drop && !(await context.news.sources.findOne({ _id: source }, { projection: { _id: 1 } }))) throw new HttpError(404, 'There is no such source.');
  await readers(context).updateOne(me(context), drop ? { $pull: { follows: source } } : { $addToSet: { follows: source } });
  return back(context, `/source/${source}`);
}

export async function saveSearch(context: Context): Promise<Redirect> {
  await own(context);
  const name = field(context, 'name', 60);
  const query = new URLSearchParams(field(context, 'query', 1000)).toString();
  await readers(context).updateOne(me(context), { $push: { searches: { id: randomBytes(6).toString('hex'), name, query } } });
  return back(context, '/mine');
}

export async function dropSearch(context: Context): Promise<Redirect> {
  await readers(context).updateOne(me(context), { $pull: { searches: { id: field(context, 'id') } } });
  return back(context, '/mine');
}
