/** Items of a feed become posts: new, known, edited, or printed twice. Safe to run twice, and twice at once. */
import { createHash } from 'node:crypto';
import { MongoServerError } from 'mongodb';
import type { News } from '../db/connect.js';
import type { Post, Source } from '../db/types.js';
import { dateOf } from '../fetch/dates.js';
import type { Item } from '../fetch/parse.js';
import { excerptOf, makeSafe, plain, quoteOf, type Safe } from '../fetch/sanitize.js';
import { bandsOf, fewWords, near, resemblance, wordsOf } from './fingerprint.js';
import { keysOf, slugOf } from './identity.js';

export interface Counts {
  fresh: number;
  edited: number;
  doubles: number;
}

type Outcome = 'fresh' | 'edited' | 'double' | 'same';

/** How often an edit of the same post is kept. */
const maxVersions = 20;

/** Keys that a post has at most, as its validator says. */
const mostKeys = 50;

/** If more posts than this have a band in common with those of a feed, each is looked at by itself. */
const mostAlike = 2000;

/** Names of languages as text indexes have them; others are indexed word by word, as they are. */
const textLanguages: Record<string, string> = { en: 'english', de: 'german', fr: 'french', es: 'spanish', it: 'italian', pt: 'portuguese', nl: 'dutch' };

/** So many items are looked up, and those that are new inserted, in one request each. */
const together = 100;

export async function ingest(news: News, source: Source, items: Item[], seen: Date): Promise<Counts> {
  const counts: Counts = { fresh: 0, edited: 0, doubles: 0 };
  const keys = keysOf(source._id, items);
  const done = new Set<string>();
  for (let begin = 0; begin < items.length; begin += together) {
    const batch: Made[] = [];
    for (let i = begin; i < Math.min(begin + together, items.length); i++) {
      // Without dates the feed's order counts: its first item is the newest.
      const made = postOf(source, items[i] as Item, keys[i] as string[], new Date(seen.getTime() - i));
      if (made) batch.push(made);
    }
    const outcomes = await keepTogether(news, batch.map(({ post }) => post), done);
    const pictures: Safe['pictures'] = [];
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome === 'fresh') counts.fresh++;
      if (outcome === 'edited') counts.edited++;
      if (outcome === 'double') counts.doubles++;
      if (outcome === 'fresh' || outcome === 'edited') pictures.push(...(batch[i] as Made).safe.pictures);
    }
    await wantPictures(news, pictures);
  }
  return counts;
}

interface Made {
  post: Post;
  safe: Safe;
}

function postOf(source: Source, item: Item, keys: string[], seen: Date): Made | undefined {
  const safe = makeSafe(item.html, item.base);
  const title = (plain(item.title) || excerptOf(safe.text, 10)).slice(0, 500);
  if (!title) return undefined;
  const own = new URL(source.home).hostname.replace(/^www\./, '');
  const lang = source.lang.slice(0, 2);
  const post: Post = {
    _id: slugOf(title, keys[0] as string),
    source: source._id,
    sourceName: source.name,
    keys,
    link: item.link ?? source.home,
    title,
    author: plain(item.author).slice(0, 200) || (source.authors.length === 1 ? (source.authors[0] as string) : ''),
    ...dateOf(item, seen),
    added: seen,
    html: safe.html,
    excerpt: source.full ? excerptOf(safe.text) : quoteOf(safe.text),
    text: safe.text.slice(0, 100_000),
    textLanguage: textLanguages[lang] ?? 'none',
    lang: source.lang,
    tags: tagsOf([...item.tags, ...source.tags]),
    links: safe.links.filter((host) => host !== own),
    pictures: safe.pictures.map(({ id }) => id),
    full: source.full,
    state: source.review ? 'waiting' : 'shown',
    pinned: false,
    digest: createHash('sha256').update(`${title}\n${safe.html}`).digest('hex').slice(0, 32),
    bands: bandsOf(safe.text || title),
    also: [],
    versions: [],
  };
  return { post, safe };
}

/** Tags in one spelling: small letters, words joined by dashes, no tag twice. */
export function tagsOf(tags: string[]): string[] {
  const spelled = tags.map((tag) => plain(tag).toLowerCase().replace(/[^\p{L}\p{N}+#]+/gu, '-').replace(/^-+|-+$/g, '').slice(0, 40));
  return [...new Set(spelled.filter(Boolean))].slice(0, 12);
}

/**
 * Keeps the posts of a feed. `done` are the posts that this round has met: what comes a second time is no edit.
 *
 * Two questions for all of them: which keys are known, and which bands. A post that has neither is new and waits to be
 * inserted with the others; all else goes post by post. The items are taken in the feed's order, and one that is the
 * same as a new post before it joins that post before the database sees either.
 */
async function keepTogether(news: News, posts: Post[], done: Set<string>): Promise<Outcome[]> {
  if (!posts.length) return [];
  const all = (of: (post: Post) => string[]) => [...new Set(posts.flatMap(of))];
  const [known, alike] = await Promise.all([
    news.posts.find({ keys: { $in: all(({ keys }) => keys) } }, { projection: { keys: 1, source: 1, digest: 1 } }).toArray(),
    news.posts.find({ bands: { $in: all(({ bands }) => bands) } }, { projection: { bands: 1 } }).limit(mostAlike).toArray(),
  ]);
  const byKey = new Map(known.flatMap((post) => post.keys.map((key) => [key, post] as const)));
  const knownBands = new Set(alike.flatMap(({ bands }) => bands));
  const crowded = alike.length === mostAlike;
  const outcomes: Outcome[] = [];
  const fresh = new Map<Post, number>();
  for (const [i, post] of posts.entries()) {
    const twin = twinOf(post, fresh.keys());
    const same = byKey.get(post.keys[0] as string);
    if (same && !done.has(same._id) && same.source === post.source && same.keys[0] === post.keys[0] && same.digest === post.digest && post.keys.every((key) => same.keys.includes(key))) {
      // Most items of most feeds: nothing to do.
      done.add(same._id);
      outcomes.push('same');
    } else if (twin) outcomes.push(join(twin, post));
    else if (crowded || post.keys.some((key) => byKey.has(key)) || post.bands.some((band) => knownBands.has(band))) outcomes.push(await keep(news, post, done));
    else {
      fresh.set(post, i);
      outcomes.push('fresh');
    }
  }
  for (const post of await insertNew(news, [...fresh.keys()])) {
    // Another fetcher was quicker.
    outcomes[fresh.get(post) as number] = await keep(news, post, done);
    fresh.delete(post);
  }
  for (const { _id } of fresh.keys()) done.add(_id);
  return outcomes;
}

/** The new post that this one is once more, if there is one: the same rules as for posts that are in the database. */
function twinOf(post: Post, fresh: Iterable<Post>): Post | undefined {
  let twin: Post | undefined;
  for (const other of fresh) {
    if (other.keys.some((key) => post.keys.includes(key))) return other;
    if (!twin && areNear(other, post)) twin = other;
  }
  return twin;
}

/** A new post takes over the keys and the place of the one that is the same. */
function join(fresh: Post, post: Post): Outcome {
  const missing = post.keys.filter((key) => !fresh.keys.includes(key));
  const elsewhere = post.link !== fresh.link && !fresh.also.some(({ link }) => link === post.link);
  fresh.keys.push(...missing.slice(0, Math.max(0, mostKeys - fresh.keys.length)));
  if (elsewhere) fresh.also.push({ source: post.source, link: post.link });
  return missing.length || elsewhere ? 'double' : 'same';
}

/**
 * Inserts new posts and returns those that cannot be: others have a key or the name of theirs, or nearly their words. Keys are
 * unique by their index; that no two posts have nearly the same words is a rule that no index knows. So the question and the answer are one
 * serializable transaction: of two fetchers that both find nothing the second fails at its commit, and asks again.
 */
async function insertNew(news: News, posts: Post[]): Promise<Post[]> {
  if (!posts.length) return [];
  const bands = [...new Set(posts.flatMap((post) => post.bands))];
  try {
    return await news.client.withSession((session) =>
      session.withTransaction(
        async () => {
          const alike = await news.posts.find({ bands: { $in: bands } }, { session, limit: mostAlike }).toArray();
          const taken = alike.length === mostAlike ? posts : posts.filter((post) => alike.some((other) => areNear(other, post)));
          const free = posts.filter((post) => !taken.includes(post));
          if (free.length) await news.posts.insertMany(free, { session });
          return taken;
        },
        { readConcern: { level: 'serializable' as 'snapshot' } },
      ),
    );
  } catch (error) {
    // A key or a name is there already: none of them was inserted.
    if (error instanceof MongoServerError && error.code === 11000) return posts;
    throw error;
  }
}

/** Whether two posts that have a band in common say nearly the same. Short texts have to be the same words under the same title in the same source. */
function areNear(one: Post, other: Post): boolean {
  if (!one.bands.some((band) => other.bands.includes(band))) return false;
  if (wordsOf(other.text).length < fewWords) return one.source === other.source && one.title === other.title;
  return resemblance(one.text, other.text) >= near;
}

/** Keeps one post. */
async function keep(news: News, post: Post, done: Set<string>): Promise<Outcome> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const known = await news.posts.findOne({ keys: { $in: post.keys } });
    if (known) {
      const again = done.has(known._id);
      done.add(known._id);
      return again ? await addPlace(news, known, post) : await update(news, known, post);
    }
    const twin = await nearSame(news, post);
    if (twin) {
      done.add(twin._id);
      return addPlace(news, twin, post);
    }
    const [left] = await insertNew(news, [post]);
    if (!left) {
      done.add(post._id);
      return 'fresh';
    }
    // Another fetcher was quicker: look again, there is a post now. Or another post has the name.
    if (await news.posts.findOne({ _id: post._id }, { projection: { _id: 1 } })) post._id = slugOf(post.title, `${post.keys[0]}${attempt}`);
  }
  throw new Error(`the post ${post._id} cannot be kept: others hold its keys and cannot be found by them`);
}

/** A post of nearly the same words, wherever it stands. */
async function nearSame(news: News, post: Post): Promise<Post | undefined> {
  // Short texts have to be the same words under the same title in the same source.
  if (wordsOf(post.text).length < fewWords) return (await news.posts.findOne({ bands: post.bands[0] as string, source: post.source, title: post.title })) ?? undefined;
  const candidates = await news.posts.find({ bands: { $in: post.bands } }, { limit: 200 }).toArray();
  return candidates.find((other) => areNear(other, post));
}

/** The same post once more: its keys belong to the known one from now on, and the place is remembered. */
async function addPlace(news: News, known: Post, post: Post): Promise<Outcome> {
  const places = [{ source: post.source, link: post.link }, ...post.also].filter(({ link }) => link !== known.link && !known.also.some((also) => also.link === link));
  const missing = post.keys.filter((key) => !known.keys.includes(key));
  if (!missing.length && !places.length) return 'same';
  try {
    await news.posts.updateOne(
      // Feeds that change all identifiers each time would make the document grow without end.
      { _id: known._id, 'keys.45': { $exists: false } },
      { $addToSet: { keys: { $each: missing }, also: { $each: places } } },
    );
  } catch (error) {
    // One of the keys is another post's already: then this is known as that one.
    if (!(error instanceof MongoServerError) || error.code !== 11000) throw error;
  }
  return 'double';
}

/** A known post: edited if its source says something else under the key that decides. */
async function update(news: News, known: Post, post: Post): Promise<Outcome> {
  if (known.source !== post.source || known.keys[0] !== post.keys[0]) return addPlace(news, known, post);
  const missing = post.keys.filter((key) => !known.keys.includes(key)).slice(0, Math.max(0, mostKeys - known.keys.length));
  if (known.digest === post.digest) {
    if (missing.length) await addPlace(news, known, post);
    return 'same';
  }
  const { title, html, excerpt, text, links, pictures, digest, bands } = post;
  // Other markup around the same words is no edit that readers need to know of.
  const said = known.title !== title || known.text !== text;
  const { modifiedCount } = await news.posts.updateOne(
    { _id: known._id, digest: known.digest },
    {
      $set: { title, html, excerpt, text, links, pictures, digest, bands, ...(said && { edited: post.added }) },
      ...(said && { $push: { versions: { $each: [{ until: post.added, title: known.title, html: known.html }], $slice: -maxVersions } } }),
    },
  );
  return modifiedCount && said ? 'edited' : 'same';
}

async function wantPictures(news: News, pictures: Safe['pictures']): Promise<void> {
  if (!pictures.length) return;
  await news.pictures.bulkWrite(
    pictures.map(({ id, url }) => ({ updateOne: { filter: { _id: id }, update: { $setOnInsert: { url, state: 'wanted' as const, tries: 0 } }, upsert: true } })),
    { ordered: false },
  );
}
