/** What is derived from posts: the words that are suggested, and the states of the outgoing feeds. */
import type { ClientSession } from 'mongodb';
import type { News } from '../db/connect.js';
import type { Post } from '../db/types.js';
import { wordsOf } from '../post/fingerprint.js';

export type Seen = Pick<Post, '_id' | 'state' | 'title' | 'source' | 'tags' | 'added' | 'edited'>;

const stopWords = new Set('the and for are but not you all any can had her was one our out has his how its may who did get with that this from they will what when your which their there have than then into over more some such only after about without between before does why were been being them these those would could should und der die das von mit'.split(' '));

/** The words of a title that are worth suggesting. */
export function suggested(title: string): string[] {
  return [...new Set(wordsOf(title).filter((word) => word.length > 2 && word.length < 30 && !stopWords.has(word) && !/^\d+$/.test(word)))];
}

/** What some changes add to the words and to the feeds. */
export class Derived {
  readonly words = new Map<string, number>();
  readonly #feeds = new Map<string, number>();

  /** Counts a change of a post, and the words of its title if the post appears by it. */
  add(post: Seen, appears: boolean): void {
    const count = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
    if (appears) for (const word of suggested(post.title)) count(this.words, word);
    for (const feed of ['all', `source:${post.source}`, ...post.tags.map((tag) => `tag:${tag}`)]) count(this.#feeds, feed);
  }

  async write(news: News, session: ClientSession): Promise<void> {
    const changed = new Date();
    if (this.words.size) await news.suggestions.bulkWrite([...this.words].map(([_id, n]) => ({ updateOne: { filter: { _id }, update: { $inc: { n } }, upsert: true } })), { session });
    if (this.#feeds.size) await news.feedstate.bulkWrite([...this.#feeds].map(([_id, n]) => ({ updateOne: { filter: { _id }, update: { $set: { changed }, $inc: { n } }, upsert: true } })), { session });
  }
}
