/** The editor's side: what waits, which feeds fail, who changed what. */
import type { Change, Post, Source } from '../db/types.js';
import { HttpError, type Context, type Page } from '../site/context.js';
import { clock, shortly, span } from '../site/dates.js';
import { html, type Html, trusted } from '../site/html.js';
import { byline, titleList, titles } from '../site/posts.js';

const when = (date: Date) => html`<time datetime="${date.toISOString()}">${shortly(date)}, ${clock(date)}</time>`;

function tabs(context: Context): Html {
  const tab = (path: string, label: string) => html`<a href="${path}"${context.url.pathname === path ? html` aria-current="page"` : ''}>${label}</a>`;
  return html`<nav class="tabs" aria-label="Desk">${tab('/desk', 'Overview')}${tab('/desk/changes', 'Changes')}${tab('/desk/readers', 'Readers')}</nav>`;
}

export async function overview(context: Context): Promise<Page> {
  const { reads } = context;
  const [waiting, failing, sources, hidden, recent] = await Promise.all([
    reads.find<Post>('posts', { state: 'waiting' }, { sort: { added: -1 }, limit: 30, projection: { title: 1, excerpt: 1, source: 1, sourceName: 1, author: 1, published: 1, lang: 1 } }),
    reads.find<Source>('sources', { $or: [{ 'fetch.failures': { $gt: 0 } }, { state: 'paused' }] }, { sort: { 'fetch.failures': -1 } }),
    reads.find<Source>('sources', {}, { sort: { name: 1 }, projection: { name: 1, state: 1, refreshMinutes: 1, 'fetch.next': 1, 'fetch.lastOk': 1 } }),
    reads.find<Post>('posts', { state: 'hidden' }, { sort: { published: -1 }, limit: 10, projection: titles }),
    reads.find<Change>('changes', {}, { sort: { at: -1 }, limit: 8 }),
  ]);
  return {
    kind: 'page',
    title: 'Desk',
    unlisted: true,
    main: html`<h1>Desk</h1>${tabs(context)}
<section><h2>Waiting</h2>${waiting.length ? waiting.map((post) => html`<article class="post" lang="${post.lang}"><h3 dir="auto"><a href="/desk/post/${post._id}">${post.title}</a></h3>${byline(post, true)}<div class="body" dir="auto"><p>${post.excerpt}</p></div>
<form method="post" action="/desk/post/${post._id}" lang="en"><button name="do" value="accept">Accept<span class="hidden"> ${post.title}</span></button> <button name="do" value="hide">Hide<span class="hidden"> ${post.title}</span></button></form></article>`) : html`<p>Nothing waits.</p>`}</section>
<section><h2>Feeds in trouble</h2>${failing.length ? html`<ul class="plainlist">${failing.map(({ _id, name, state, fetch }) => html`<li><a href="/desk/source/${_id}">${name}</a>: ${state === 'paused' ? 'paused' : html`${fetch.failures} ${fetch.failures === 1 ? 'failure' : 'failures'} in a row`}${fetch.history[0]?.error && html`, ${fetch.history[0].error}`}${fetch.lastOk && html`; last good ${when(fetch.lastOk)}`}</li>`)}</ul>` : html`<p>All feeds answer.</p>`}</section>
<section><h2>Recent changes</h2>${changeList(recent)}</section>
${hidden.length > 0 && html`<section><h2>Hidden</h2>${titleList(hidden)}</section>`}
<section><h2>Sources</h2><ul class="plainlist">${sources.map(({ _id, name, state, fetch }) => html`<li><a href="/desk/source/${_id}">${name}</a> <small>${state === 'paused' ? 'paused' : `next in ${span(fetch.next.getTime() - Date.now())}`}</small></li>`)}</ul>
<details><summary>Add a source</summary>${sourceForm('/desk/sources')}</details></section>`,
  };
}

function changeList(list: Change[]): Html {
  if (!list.length) return html`<p>No changes yet.</p>`;
  return html`<ol class="changes">${list.map((change) => html`<li${change.undone ? html` class="undone"` : ''}>${when(change.at)} <b>${change.who}</b> ${change.note}
${change.undone ? html`<small>undone</small>` : html`<form class="inline" method="post" action="/desk/undo"><button class="plain" name="change" value="${change._id.toHexString()}">undo<span class="hidden">: ${change.note}</span></button></form>`}</li>`)}</ol>`;
}

export async function changes(context: Context): Promise<Page> {
  const list = await context.reads.find<Change>('changes', {}, { sort: { at: -1 }, limit: 200 });
  return { kind: 'page', title: 'Changes', unlisted: true, main: html`<h1>Changes</h1>${tabs(context)}${changeList(list)}` };
}

export async function postDesk(context: Context, [id = '']: string[]): Promise<Page> {
  const [post, history] = await Promise.all([
    context.reads.one<Post>('posts', { _id: id } as never),
    context.reads.find<Change>('changes', { 'edits.id': id }, { sort: { at: -1 }, limit: 50 }),
  ]);
  if (!post) throw new HttpError(404, 'There is no such post.');
  const act = (name: string, label: string) => html`<button name="do" value="${name}">${label}</button> `;
  return {
    kind: 'page',
    title: `Desk: ${post.title}`,
    unlisted: true,
    main: html`<h1 dir="auto">${post.title}</h1>${tabs(context)}
${byline(post, true)}<p>It is ${post.state}${post.mergedInto && html` into <a href="/desk/post/${post.mergedInto}">${post.mergedInto}</a>`}${post.pinned && ' and pinned'}. <a href="/post/${id}">See it</a>, <a href="${post.link}" rel="noreferrer">the original</a>.</p>
<form method="post" action="/desk/post/${id}" class="acts">${post.state !== 'shown' ? act('accept', 'Show') : act('hide', 'Hide')}${post.pinned ? act('unpin', 'Unpin') : act('pin', 'Pin')}</form>
<h2>Correct</h2>
<form class="sheet" method="post" action="/desk/post/${id}">
<label>Title <input name="title" value="${post.title}" maxlength="500" required></label>
<label>Author <input name="author" value="${post.author}" maxlength="200"></label>
<label>Tags <input name="tags" value="${post.tags.join(', ')}"></label>
<button name="do" value="correct">Save</button></form>
<h2>Merge</h2>
<form class="sheet" method="post" action="/desk/post/${id}/merge">
<label>This post is the same as <input name="into" placeholder="address or name of the other post" required></label><button>Merge into it</button></form>
<h2>History</h2>${changeList(history)}
<details><summary>Keys</summary><ul>${post.keys.map((key) => html`<li><code>${key}</code></li>`)}</ul></details>
<h2>What readers see</h2><div class="body" dir="auto" lang="${post.lang}">${trusted(post.html)}</div>`,
  };
}

function sourceForm(action: string, source?: Source): Html {
  const value = (name: keyof Source) => (source ? String(source[name]) : '');
  const box = (name: 'full' | 'review', label: string) => html`<label class="box"><input type="checkbox" name="${name}" value="yes"${source?.[name] ? html` checked` : ''}> ${label}</label>`;
  return html`<form class="sheet" method="post" action="${action}">
${!source && html`<label>Short name, for addresses <input name="id" pattern="[a-z0-9\\-]{1,40}" required></label>`}
<label>Name <input name="name" value="${value('name')}" maxlength="100" required></label>
<label>Home page <input name="home" type="url" value="${value('home')}" required></label>
<label>Feed <input name="feed" type="url" value="${value('feed')}" required></label>
<label>Kind <select name="kind">${['researcher', 'project', 'vendor', 'practitioner'].map((kind) => html`<option${kind === source?.kind ? html` selected` : ''}>${kind}</option>`)}</select></label>
<label>Why it is authoritative <textarea name="why" minlength="10" maxlength="500" rows="3" required>${value('why')}</textarea></label>
<label>Authors, divided by commas <input name="authors" value="${source?.authors.join(', ') ?? ''}"></label>
<label>Language <input name="lang" value="${source?.lang ?? 'en'}" pattern="[a-z]{2,3}(-[A-Za-z0-9]+)*" required></label>
<label>Tags <input name="tags" value="${source?.tags.join(', ') ?? ''}"></label>
<label>Minutes between fetches <input name="refreshMinutes" type="number" min="0.01" max="10080" step="any" value="${source?.refreshMinutes ?? 60}" required></label>
${box('full', 'May be shown in full')}${box('review', 'New posts wait for an editor')}
<button name="do" value="save">Save</button></form>`;
}

export async function sourceDesk(context: Context, [id = '']: string[]): Promise<Page> {
  const [source, history] = await Promise.all([
    context.reads.one<Source>('sources', { _id: id } as never),
    context.reads.find<Change>('changes', { 'edits.id': id }, { sort: { at: -1 }, limit: 50 }),
  ]);
  if (!source) throw new HttpError(404, 'There is no such source.');
  const { fetch } = source;
  return {
    kind: 'page',
    title: `Desk: ${source.name}`,
    unlisted: true,
    main: html`<h1>${source.name}</h1>${tabs(context)}
<p>It is ${source.state}; ${fetch.failures ? `${fetch.failures} failures in a row` : 'the last fetch was good'}; next fetch ${when(fetch.next)}.${source.formerly.length > 0 && html` Formerly at ${source.formerly.join(', ')}.`}</p>
<form method="post" action="/desk/source/${id}" class="acts"><button name="do" value="${source.state === 'active' ? 'pause' : 'resume'}">${source.state === 'active' ? 'Pause' : 'Resume'}</button> <button name="do" value="now">Fetch now</button></form>
<h2>Attempts</h2>
${fetch.history.length ? html`<div class="scroll"><table><thead><tr><th scope="col">When</th><th scope="col">Status</th><th scope="col">ms</th><th scope="col">kB</th><th scope="col">New</th><th scope="col">Reason</th></tr></thead>
<tbody>${fetch.history.map((attempt) => html`<tr><td>${when(attempt.at)}</td><td>${attempt.status || '–'}</td><td>${attempt.ms}</td><td>${(attempt.bytes / 1024).toFixed(1)}</td><td>${attempt.fresh}</td><td>${attempt.error ?? ''}</td></tr>`)}</tbody></table></div>` : html`<p>None yet.</p>`}
<h2>About it</h2>${sourceForm(`/desk/source/${id}`, source)}
<h2>History</h2>${changeList(history)}`,
  };
}

export async function readers(context: Context): Promise<Page> {
  // The same query for editors and owners: what comes back of addresses is the database's affair (docs/masking.md).
  const list = await context.reads.find<{ _id: string; email: string; joined: Date; follows: string[]; bookmarks: unknown[] }>('readers', {}, { sort: { joined: -1 }, limit: 200, projection: { email: 1, joined: 1, follows: 1, bookmarks: 1 } });
  return {
    kind: 'page',
    title: 'Readers',
    unlisted: true,
    main: html`<h1>Readers</h1>${tabs(context)}
<p class="lead">${context.may('owner') ? 'Owners see addresses as they are.' : 'Addresses are masked by the database for editors.'}</p>
<div class="scroll"><table><thead><tr><th scope="col">Name</th><th scope="col">Address</th><th scope="col">Joined</th><th scope="col">Follows</th><th scope="col">Bookmarks</th>${context.may('owner') && html`<th scope="col">Role</th>`}</tr></thead>
<tbody>${list.map((reader) => html`<tr><td>${reader._id}</td><td>${reader.email}</td><td>${shortly(reader.joined)}</td><td>${reader.follows.length}</td><td>${reader.bookmarks.length}</td>${context.may('owner') && html`<td><form class="inline" method="post" action="/desk/role"><input type="hidden" name="user" value="${reader._id}"><button name="role" value="editor">make editor<span class="hidden"> of ${reader._id}</span></button> <button name="role" value="reader">reader<span class="hidden"> of ${reader._id}</span></button></form></td>`}</tr>`)}</tbody></table></div>`,
  };
}
