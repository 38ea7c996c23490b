/** Lists of posts, a page at a time. */
import type { Filter } from 'mongodb';
import type { Post } from '../db/types.js';
import type { Context } from './context.js';
import { listed, type Listed } from './posts.js';

/** A page of posts carries at most so much HTML, so that it stays below 60 kB with its frame. */
const pageBytes = 40_000;
const pagePosts = 30;

export interface PostPage {
  posts: Listed[];
  /** Where the next page begins, for its address; absent at the end. */
  older: { before: string; after: string } | undefined;
}

/**
 * The posts that match, newest first. A page that is not the first begins at a time, `?before=`, after so many posts of
 * that very time, `?after=`: feeds that give days without hours have many posts of one time.
 */
export async function newest(context: Context, filter: Filter<Post>, most = pagePosts): Promise<PostPage> {
  const query = context.url.searchParams;
  const before = Date.parse(query.get('before') ?? '');
  const begun = Number.isNaN(before) ? undefined : new Date(before);
  const skip = begun ? Math.min(10_000, Math.max(0, Math.trunc(Number(query.get('after')) || 0))) : 0;
  const shown = { state: 'shown', ...filter, ...(begun && { published: { $lte: begun } }) } as Filter<Post>;
  const found = await context.reads.find<Post>('posts', shown, { sort: { published: -1 }, limit: most + 1, projection: listed, ...(skip > 0 && { skip }) });
  let bytes = 0;
  const posts: Listed[] = [];
  for (const post of found.slice(0, most)) {
    bytes += post.full && post.html.length < 3500 ? post.html.length : post.excerpt.length;
    bytes += 600;
    if (posts.length && bytes > pageBytes) break;
    posts.push(post);
  }
  const last = posts.at(-1)?.published;
  if (!last || posts.length === found.length) return { posts, older: undefined };
  const ofThatTime = posts.filter(({ published }) => published.getTime() === last.getTime()).length;
  return { posts, older: { before: last.toISOString(), after: String(ofThatTime + (begun?.getTime() === last.getTime() ? skip : 0)) } };
}

/** Which of these posts the user has read. */
export async function readMarks(context: Context, posts: { _id: string }[]): Promise<Set<string>> {
  if (!context.user || !posts.length) return new Set();
  const { name } = context.user;
  const marks = await context.site.pools.reader.reads.find({ '_id.reader': name, '_id.post': { $in: posts.map(({ _id }) => _id) } }).toArray();
  return new Set(marks.map(({ _id }) => _id.post));
}
