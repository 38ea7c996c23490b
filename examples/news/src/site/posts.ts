/** How a post looks in lists and alone, and which of its fields each needs. */
import type { Post } from '../db/types.js';
import { clock, dayOf, inWords, shortly } from './dates.js';
import { html, type Html, trusted } from './html.js';

export type Listed = Pick<Post, '_id' | 'source' | 'sourceName' | 'link' | 'title' | 'author' | 'published' | 'dateFrom' | 'added' | 'edited' | 'html' | 'excerpt' | 'lang' | 'tags' | 'full' | 'state' | 'pinned' | 'also'>;

/** What lists show of posts: not the words for the index, and not what was edited away. */
export const listed = {
  source: 1, sourceName: 1, link: 1, title: 1, author: 1, published: 1, dateFrom: 1, added: 1, edited: 1, html: 1, excerpt: 1, lang: 1, tags: 1, full: 1, state: 1, pinned: 1, also: 1,
} as const;

/** Lists of titles need less. */
export const titles = { source: 1, sourceName: 1, title: 1, published: 1, lang: 1, author: 1 } as const;

/** Posts with longer HTML are excerpts in lists, even when they may be shown in full. */
const longInLists = 3500;

export function hostOf(link: string): string {
  return new URL(link).hostname.replace(/^www\./, '');
}

/** The line below a title. */
export function byline(post: Pick<Post, '_id' | 'source' | 'sourceName' | 'author' | 'published'> & Partial<Post>, withDay = false): Html {
  return html`<p class="byline" lang="en"><a href="/source/${post.source}" dir="auto">${post.sourceName}</a>${post.author && html` · <span dir="auto">${post.author}</span>`} · <a class="when" href="/post/${post._id}"><time datetime="${post.published.toISOString()}">${withDay ? `${shortly(post.published)}, ` : ''}${clock(post.published)}</time></a>${post.edited && html` · <a class="edited" href="/post/${post._id}#versions">edited ${shortly(post.edited)}</a>`}${post.pinned && html` · <span class="pin">pinned</span>`}</p>`;
}

export function article(post: Listed, options: { withDay?: boolean; read?: boolean; html?: Html; level?: 2 | 3 } = {}): Html {
  const whole = post.full && post.html.length <= longInLists;
  const body = options.html ?? (whole ? trusted(post.html) : html`<p>${post.excerpt}</p>`);
  const heading = html`<a href="/post/${post._id}">${post.title}</a>`;
  return html`<article id="p-${post._id}" class="post${options.read ? ' read' : ''}" lang="${post.lang}">
${options.level === 2 ? html`<h2 dir="auto">${heading}</h2>` : html`<h3 dir="auto">${heading}</h3>`}
${byline(post, options.withDay)}
<div class="body" dir="auto">${body}</div>
${!whole && html`<p class="more" lang="en"><a href="${post.full ? `/post/${post._id}` : post.link}"${post.full ? '' : html` rel="noreferrer"`}>${post.full ? 'Read on' : `Read on at ${hostOf(post.link)}`}<span class="hidden">: ${post.title}</span></a></p>`}
</article>
`;
}

/** The day's name, which stands on a line of its own in the margin of wide windows. */
function dayInWords(date: Date): Html {
  const [weekday = '', ...rest] = inWords(date).split(' ');
  return html`<span class="weekday">${weekday}</span> ${rest.join(' ')}`;
}

/** Posts under the days on which they appeared, newest first. */
export function byDay(posts: Listed[], read: Set<string>): Html {
  const days = new Map<string, Listed[]>();
  for (const post of posts) {
    const day = dayOf(post.published);
    const list = days.get(day);
    if (list) list.push(post);
    else days.set(day, [post]);
  }
  return html`${[...days].map(([day, list]) => html`<section class="day" id="d-${day}" aria-labelledby="h-${day}">
<h2 id="h-${day}"><a href="/day/${day}"><time datetime="${day}">${dayInWords((list[0] as Listed).published)}</time></a></h2>
${list.map((post) => article(post, { read: read.has(post._id) }))}</section>
`)}`;
}

/** A list of titles, for archives and related posts. */
export function titleList(posts: Pick<Post, '_id' | 'source' | 'sourceName' | 'title' | 'published' | 'lang' | 'author'>[]): Html {
  return html`<ul class="titles">${posts.map((post) => html`<li><a href="/post/${post._id}" lang="${post.lang}" dir="auto">${post.title}</a> <span class="byline"><a href="/source/${post.source}" dir="auto">${post.sourceName}</a>, <time datetime="${post.published.toISOString()}">${shortly(post.published)}</time></span></li>
`)}</ul>`;
}
