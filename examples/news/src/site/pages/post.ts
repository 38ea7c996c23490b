/** A post alone, its pictures, and the stream of new posts. */
import type { ServerResponse } from 'node:http';
import type { Binary } from 'mongodb';
import type { Post } from '../../db/types.js';
import { HttpError, type Context, type Page, type Raw, type Redirect, type Taken } from '../context.js';
import { inWords } from '../dates.js';
import { html, trusted } from '../html.js';
import { byline, hostOf, titleList } from '../posts.js';
import { related } from '../related.js';

export async function postPage(context: Context, [id = '']: string[]): Promise<Page | Redirect> {
  const post = await context.reads.one<Post>('posts', { _id: id } as never, { projection: { text: 0, bands: 0 } });
  if (post?.state === 'merged' && post.mergedInto) return { kind: 'redirect', to: `/post/${post.mergedInto}` };
  if (!post || (post.state !== 'shown' && !context.may('editor'))) throw new HttpError(404, 'There is no such post.');
  const [near, reader] = await Promise.all([related(context.reads, post, await context.site.searchable()), context.reader()]);
  if (context.user) await markRead(context, id);
  const marked = reader?.bookmarks.some((bookmark) => bookmark.post === id);
  return {
    kind: 'page',
    title: post.title,
    main: html`<article class="post alone" lang="${post.lang}">
<h1 dir="auto">${post.title}</h1>
${byline(post, true)}
${post.state !== 'shown' && html`<p class="note">This post is ${post.state}.</p>`}
<div class="body" dir="auto">${post.full ? trusted(post.html) : html`<p>${post.excerpt}</p>`}</div>
<div lang="en">
<p class="more"><a href="${post.link}" rel="noreferrer">${post.full ? 'The original' : 'Read on'} at ${hostOf(post.link)}</a></p>
<p class="tags">${post.tags.map((tag) => html`<a href="/tag/${encodeURIComponent(tag)}" dir="auto">${tag}</a> `)}</p>
${post.dateFrom === 'seen' && html`<p class="note">Its feed gives no usable date: this is when we first saw the post.</p>`}
${post.also.length > 0 && html`<p class="note">Also at ${post.also.map((place, i) => html`${i ? ', ' : ''}<a href="${place.link}" rel="noreferrer">${hostOf(place.link)}</a>`)}.</p>`}
${context.user && html`<form method="post" action="/mine/bookmark" class="acts"><input type="hidden" name="post" value="${id}"><button name="do" value="${marked ? 'drop' : 'add'}">${marked ? 'Remove the bookmark' : 'Bookmark'}</button> <button formaction="/mine/read" name="do" value="unread">Mark as unread</button></form>`}
${context.may('editor') && html`<p class="more"><a href="/desk/post/${id}">Edit at the desk</a></p>`}
</div>
</article>
${post.versions.length > 0 && html`<section id="versions"><h2>What it said before</h2>
${[...post.versions].reverse().map((version) => html`<details><summary>Until ${inWords(version.until)}${version.title !== post.title && html`: ${version.title}`}</summary><div class="body" dir="auto" lang="${post.lang}">${post.full ? trusted(version.html) : html`<p>Only excerpts of this source may be shown.</p>`}</div></details>`)}</section>`}
${near.length > 0 && html`<section class="related"><h2>Related posts</h2>${titleList(near)}</section>`}`,
  };
}

/** Remembers that the reader has read it. The same mark again is no new one. */
export async function markRead(context: Context, post: string): Promise<void> {
  if (!context.user) return;
  await context.site.pools.reader.reads.updateOne({ _id: { reader: context.user.name, post } }, { $setOnInsert: { at: new Date() } }, { upsert: true });
}

export async function picture(context: Context, [id = '']: string[]): Promise<Raw> {
  const found = await context.news.pictures.findOne({ _id: id, state: 'here' });
  if (!found?.type || !found.bytes) throw new HttpError(404, 'The picture is not here.');
  const bytes = found.bytes as Binary;
  return { kind: 'raw', type: found.type, body: Buffer.from(bytes.buffer.buffer, bytes.buffer.byteOffset, bytes.position), headers: { 'cache-control': 'public, max-age=31536000, immutable' } };
}

/** Server-sent events: each new post as it comes, and those that the page missed since its `Last-Event-ID`. */
export async function live(context: Context, _parts: string[], response: ServerResponse): Promise<Taken> {
  await context.site.live.join(context.request, response, context.url.searchParams.get('since') ?? undefined);
  return { kind: 'taken' };
}

