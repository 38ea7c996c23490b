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
  /** Where the next page begins; absent at the end. */
  older: Date | undefined;
}

/** The posts that match, newest first, from `?before=` on. */
export async function newest(context: Context, filter: Filter<Post>, most = pagePosts): Promise<PostPage> {
  const text = context.url.searchParams.get('before');
  const before = text && !Number.isNaN(Date.parse(text)) ? new Date(text) : undefined;
  const shown = { state: 'shown', ...filter, ...(before && { published: { $lt: before } }) } as Filter<Post>;
  const found = await context.reads.find<Post>('posts', shown, { sort: { published: -1 }, limit: most + 1, projection: listed });
  let bytes = 0;
  const posts: Listed[] = [];
  for (const post of found.slice(0, most)) {
    bytes += post.full && post.html.length < 3500 ? post.html.length : post.excerpt.length;
    bytes += 600;
    if (posts.length && bytes > pageBytes) break;
    posts.push(post);
  }
  return { posts, older: posts.length < found.length ? posts.at(-1)?.published : undefined };
}

/** Which of these posts the user has read. */
export async function readMarks(context: Context, posts: { _id: string }[]): Promise<Set<string>> {
  if (!context.user || !posts.length) return new Set();
  const { name } = context.user;
  const marks = await context.site.pools.reader.reads.find({ '_id.reader': name, '_id.post': { $in: posts.map(({ _id }) => _id) } }).toArray();
  return new Set(marks.map(({ _id }) => _id.post));
}
