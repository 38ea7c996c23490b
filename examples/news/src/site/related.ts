/**
 * Related posts, by what they say: the words of a post's title that are rarest in titles are asked of the text index,
 * which puts posts with these words in their titles first. Where words find too few, the newest posts with one of its
 * tags follow.
 */
import type { Filter } from 'mongodb';
import type { Reads } from '../db/reads.js';
import type { Post, Suggestion } from '../db/types.js';
import { suggested } from '../live/derived.js';
import { titles } from './posts.js';

const most = 5;
/** Common words relate everything to everything, and cost the most. */
const rarest = 4;

/** The rarest words of a title, by how many titles have each: the follower keeps count. */
async function tellingWords(reads: Reads, title: string): Promise<string[]> {
  const words = suggested(title);
  // A word of one title is this post's own.
  const counted = await reads.find<Suggestion>('suggestions', { _id: { $in: words }, n: { $gt: 1 } }, { sort: { n: 1, _id: 1 }, limit: rarest });
  return counted.map(({ _id }) => _id);
}

export async function related(reads: Reads, post: Post, searchable: boolean): Promise<Post[]> {
  const words = searchable ? await tellingWords(reads, post.title) : [];
  const other = { state: 'shown', _id: { $ne: post._id } };
  const alike = words.length
    ? await reads.find<Post>('posts', { $text: { $search: words.join(' '), $language: post.textLanguage }, ...other } as Filter<Post>, {
        projection: { ...titles, score: { $meta: 'textScore' } },
        sort: { score: { $meta: 'textScore' } },
        limit: most,
      })
    : [];
  if (alike.length === most || !post.tags.length) return alike;
  const known = [post._id, ...alike.map(({ _id }) => _id)];
  const tagged = await reads.find<Post>('posts', { tags: { $in: post.tags }, state: 'shown', _id: { $nin: known } } as Filter<Post>, { projection: titles, sort: { published: -1 }, limit: most - alike.length });
  return [...alike, ...tagged];
}
