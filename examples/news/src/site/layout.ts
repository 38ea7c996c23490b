/** The frame of every page: head, masthead, navigation, footer. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Figures } from '../db/reads.js';
import type { Context, Page } from './context.js';
import { html, type Html } from './html.js';

const folder = new URL('../../public/', import.meta.url);

export interface Static {
  body: Buffer;
  type: string;
  etag: string;
}

function load(name: string, type: string): Static {
  const body = readFileSync(new URL(name, folder));
  return { body, type, etag: createHash('sha256').update(body).digest('hex').slice(0, 12) };
}

export const statics: Record<string, Static> = {
  '/style.css': load('style.css', 'text/css; charset=utf-8'),
  '/news.js': load('news.js', 'text/javascript; charset=utf-8'),
  '/icon.svg': load('icon.svg', 'image/svg+xml'),
};

const versioned = (name: string) => `${name}?${(statics[name] as Static).etag}`;

const sections = [['/', 'Latest'], ['/archive', 'Archive'], ['/sources', 'Sources'], ['/tags', 'Tags'], ['/digest', 'Digest'], ['/stats', 'Figures']] as const;

export function frame(context: Context, page: Page, figures: Figures | undefined): Html {
  const { user, url } = context;
  const feeds = page.feeds ?? [{ title: 'All posts', href: '/feed.atom' }];
  const place = (path: string, label: string) =>
    html`<a href="${path}"${url.pathname === path ? html` aria-current="page"` : ''}>${label}</a>`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page.title === 'Database news' ? page.title : `${page.title} – Database news`}</title>
<meta name="color-scheme" content="light dark">
${page.unlisted && html`<meta name="robots" content="noindex">`}
<link rel="stylesheet" href="${versioned('/style.css')}">
<link rel="icon" href="/icon.svg" type="image/svg+xml">
${feeds.map((feed) => html`<link rel="alternate" type="application/atom+xml" title="${feed.title}" href="${feed.href}">
<link rel="alternate" type="application/feed+json" title="${feed.title}" href="${feed.href.replace('.atom', '.json')}">
`)}
<script src="${versioned('/news.js')}" type="module"></script>
</head>
<body${page.live ? html` data-live="${url.pathname}"` : ''}>
<a class="skip" href="#main">To the posts</a>
<header class="masthead">
<p class="name"><a href="/">Database news</a></p>
<p class="motto">A curated list, from those who build, study and run them</p>
<nav aria-label="Sections">${sections.map(([path, label]) => place(path, label))}
${user ? place('/mine', 'Mine') : ''}${context.may('editor') ? place('/desk', 'Desk') : ''}</nav>
<form class="find" action="/search" role="search"><input type="search" name="q" aria-label="Search posts" placeholder="Search" value="${url.pathname === '/search' ? (url.searchParams.get('q') ?? '') : ''}" list="words" autocomplete="off"><datalist id="words"></datalist><button>Search</button></form>
</header>
<main id="main">
${page.main}
</main>
<footer>
<p>${user
  ? html`Signed in as ${user.name} (${user.role}) <form class="inline" method="post" action="/logout"><button class="plain">Sign out</button></form>`
  : html`<a href="/login">Sign in</a> for bookmarks, read marks and saved searches`} · Feeds: <a href="${feeds[0]?.href ?? '/feed.atom'}">Atom</a>, <a href="${(feeds[0]?.href ?? '/feed.atom').replace('.atom', '.json')}">JSON</a> · <a href="/about">About</a></p>
${figures && html`<p class="figures">${figures.queries} ${figures.queries === 1 ? 'query' : 'queries'}, ${figures.ms.toFixed(1)} ms, ${figures.keys} keys and ${figures.documents} documents examined by Nestor for this page · <a href="/explain?of=${encodeURIComponent(url.pathname + url.search)}" rel="nofollow">explain</a></p>`}
</footer>
</body>
</html>
`;
}
