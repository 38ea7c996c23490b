/** What editors do. Each act is a change with its record, in one transaction (`db/changes.ts`). */
import { Int32, ObjectId } from 'mongodb';
import { change, undo, type Wish } from '../db/changes.js';
import type { Source, SourceKind } from '../db/types.js';
import { tagsOf } from '../post/ingest.js';
import { HttpError, type Context, type Redirect } from '../site/context.js';

const who = (context: Context) => context.user?.name ?? '';

function words(context: Context, name: string): string {
  return (context.form.get(name) ?? '').trim();
}

const list = (text: string) => text.split(',').map((one) => one.trim()).filter(Boolean);

export async function changePost(context: Context, [id = '']: string[]): Promise<Redirect> {
  const acts: Record<string, [note: string, set: Record<string, unknown>]> = {
    accept: ['showed', { state: 'shown', mergedInto: null }],
    hide: ['hid', { state: 'hidden', pinned: false }],
    pin: ['pinned', { pinned: true }],
    unpin: ['unpinned', { pinned: false }],
    correct: ['corrected', { title: words(context, 'title'), author: words(context, 'author'), tags: tagsOf(list(words(context, 'tags'))) }],
  };
  const what = words(context, 'do');
  const act = acts[what];
  if (!act) throw new HttpError(400, 'There is no such act.');
  if (what === 'correct' && !words(context, 'title')) throw new HttpError(400, 'A post has a title.');
  await change(context.news, who(context), what, `${act[0]} the post ${id}`, [{ collection: 'posts', id, set: act[1] }]);
  return { kind: 'redirect', to: what === 'accept' || what === 'hide' ? '/desk' : `/desk/post/${encodeURIComponent(id)}` };
}

/** Merging changes two posts: one refers to the other, and the other names the place of the first. */
export async function merge(context: Context, [id = '']: string[]): Promise<Redirect> {
  const into = decodeURIComponent(/([^/]+)\/?$/.exec(words(context, 'into'))?.[1] ?? '');
  if (!into || into === id) throw new HttpError(400, 'Name the other post.');
  const [one, other] = await Promise.all([context.news.posts.findOne({ _id: id }), context.news.posts.findOne({ _id: into })]);
  if (!one || !other) throw new HttpError(404, 'There is no such post.');
  if (other.state === 'merged') throw new HttpError(409, 'The other post was merged itself.');
  const wishes: Wish[] = [
    { collection: 'posts', id, set: { state: 'merged', mergedInto: into, pinned: false } },
    { collection: 'posts', id: into, set: { also: [...other.also, { source: one.source, link: one.link }] } },
  ];
  await change(context.news, who(context), 'merge', `merged the post ${id} into ${into}`, wishes);
  return { kind: 'redirect', to: `/desk/post/${encodeURIComponent(into)}` };
}

function sourceFields(context: Context): Omit<Source, '_id' | 'fetch' | 'state' | 'added' | 'formerly'> {
  const minutes = Number(words(context, 'refreshMinutes'));
  if (!(minutes > 0)) throw new HttpError(400, 'Say how many minutes lie between two fetches.');
  for (const name of ['home', 'feed']) {
    if (!/^https?:\/\/./.test(words(context, name)) || !URL.canParse(words(context, name))) throw new HttpError(400, `The ${name} has to be an http address.`);
  }
  return {
    name: words(context, 'name'),
    home: words(context, 'home'),
    feed: words(context, 'feed'),
    kind: words(context, 'kind') as SourceKind,
    why: words(context, 'why'),
    authors: list(words(context, 'authors')),
    full: context.form.get('full') === 'yes',
    review: context.form.get('review') === 'yes',
    lang: words(context, 'lang'),
    tags: tagsOf(list(words(context, 'tags'))),
    refreshMinutes: minutes,
  };
}

export async function changeSource(context: Context, [id = '']: string[]): Promise<Redirect> {
  const what = words(context, 'do');
  const now = new Date();
  if (what === 'now') {
    // No change of what the source is, so nothing to undo.
    await context.news.sources.updateOne({ _id: id }, { $set: { 'fetch.next': now } });
  } else {
    const acts: Record<string, () => [note: string, set: Record<string, unknown>]> = {
      pause: () => ['paused', { state: 'paused' }],
      resume: () => ['resumed', { state: 'active' }],
      save: () => ['described', { ...sourceFields(context) }],
    };
    const act = acts[what]?.();
    if (!act) throw new HttpError(400, 'There is no such act.');
    await change(context.news, who(context), what, `${act[0]} the source ${id}`, [{ collection: 'sources', id, set: act[1] }]);
  }
  return { kind: 'redirect', to: `/desk/source/${id}` };
}

/** A new source and the record of who added it, together or not at all. */
export async function addSource(context: Context): Promise<Redirect> {
  const id = words(context, 'id');
  const now = new Date();
  const source: Source = {
    _id: id,
    ...sourceFields(context),
    formerly: [],
    state: 'active',
    added: now,
    fetch: { next: now, lease: new Date(0), failures: new Int32(0) as never, history: [] },
  };
  const { news } = context;
  await news.client.withSession((session) =>
    session.withTransaction(async () => {
      await news.sources.insertOne(source, { session });
      // Undoing it pauses the source: what it brought stays.
      await news.changes.insertOne({ _id: new ObjectId(), at: now, who: who(context), what: 'add', note: `added the source ${id}`, edits: [{ collection: 'sources', id, before: { state: 'paused' }, after: { state: 'active' } }] }, { session });
    }),
  );
  return { kind: 'redirect', to: `/desk/source/${id}` };
}

export async function undoChange(context: Context): Promise<Redirect> {
  const id = words(context, 'change');
  if (!ObjectId.isValid(id)) throw new HttpError(400, 'There is no such change.');
  await undo(context.news, who(context), new ObjectId(id));
  return { kind: 'redirect', to: '/desk/changes' };
}

/** Owners make editors of readers and readers of editors: roles of the database. */
export async function changeRole(context: Context): Promise<Redirect> {
  const user = words(context, 'user');
  const role = words(context, 'role');
  if (role !== 'editor' && role !== 'reader') throw new HttpError(400, 'The roles to give are editor and reader.');
  if (user.startsWith('news-') || user === who(context)) throw new HttpError(400, 'Not that one.');
  const [now, before] = role === 'editor' ? ['newsEditor', 'newsReader'] : ['newsReader', 'newsEditor'];
  await context.news.db.command({ grantRolesToUser: user, roles: [now] });
  await context.news.db.command({ revokeRolesFromUser: user, roles: [before] });
  await context.site.sessions.endAll(user);
  return { kind: 'redirect', to: '/desk/readers' };
}
