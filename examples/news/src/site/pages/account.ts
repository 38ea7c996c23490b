/** Signing in and out, joining, and what the site is. */
import type { Context, Page, Redirect } from '../context.js';
import { html } from '../html.js';

/** Where to go after signing in: a path of this site, and never another site's address. */
function nextOf(value: string | null): string {
  return value && /^\/(?![/\\])/.test(value) ? value : '/mine';
}

export async function loginPage(context: Context): Promise<Page> {
  return {
    kind: 'page',
    title: 'Sign in',
    unlisted: true,
    main: html`<h1>Sign in</h1>
<form class="sheet" method="post" action="/login"><input type="hidden" name="next" value="${nextOf(context.url.searchParams.get('next'))}">
<label>Name <input name="name" autocomplete="username" required></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Sign in</button></form>
<p>No account yet? <a href="/join">Join</a>: bookmarks, read marks, followed sources and saved searches with a feed of your own.</p>`,
  };
}

export async function logIn(context: Context): Promise<Redirect> {
  const cookie = await context.site.sessions.logIn(context.request, (context.form.get('name') ?? '').trim().toLowerCase(), context.form.get('password') ?? '');
  return { kind: 'redirect', to: nextOf(context.form.get('next')), headers: { 'set-cookie': cookie } };
}

export async function logOut(context: Context): Promise<Redirect> {
  return { kind: 'redirect', to: '/', headers: { 'set-cookie': await context.site.sessions.logOut(context.request) } };
}

export async function joinPage(): Promise<Page> {
  return {
    kind: 'page',
    title: 'Join',
    unlisted: true,
    main: html`<h1>Join</h1>
<form class="sheet" method="post" action="/join">
<label>Name <input name="name" autocomplete="username" pattern="[a-z0-9_\\-]{2,30}" title="2 to 30 small letters, digits, dashes, underscores" required></label>
<label>Mail address <input name="email" type="email" autocomplete="email" required></label>
<label>Password <input name="password" type="password" autocomplete="new-password" minlength="8" required></label>
<button>Join</button></form>
<p>The address is for nothing but to reach you. Editors see it masked by the database.</p>`,
  };
}

export async function join(context: Context): Promise<Redirect> {
  const { form, site } = context;
  const name = (form.get('name') ?? '').trim().toLowerCase();
  await site.sessions.join(name, (form.get('email') ?? '').trim(), form.get('password') ?? '');
  return { kind: 'redirect', to: '/mine', headers: { 'set-cookie': await site.sessions.logIn(context.request, name, form.get('password') ?? '') } };
}

export async function about(): Promise<Page> {
  return {
    kind: 'page',
    title: 'About',
    main: html`<h1>About</h1>
<div class="body"><p>A list of what researchers, projects, practitioners and vendors write about databases, chosen by editors. Each source is on the list for a reason, which <a href="/sources">the list</a> says.</p>
<p>Posts belong to their authors. A source that allows it is shown in full, all others as excerpts that end in […] with a link to the original. Pictures come from this site, so that nobody else learns what you read.</p>
<p>A post's date is the one its feed gives, if that is a possible date, else the moment we first saw it. A post that stands at several places is listed once. When a source changes a post, the page says so and keeps what it said before.</p>
<p>The site runs on Nestor, a document database. The line at the foot of each page says what the page cost it.</p></div>`,
  };
}
