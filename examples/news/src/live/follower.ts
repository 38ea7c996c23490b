/**
 * The follower of changes. A change stream tells it of each change of a post; it keeps what is derived from posts (the
 * words suggested, the states of the outgoing feeds) and tells live pages.
 *
 * What is derived and how far the follower has come are written in one transaction. A follower that dies begins again
 * at that place: nothing is left out and no word counted twice.
 */
import type { ChangeStream, ChangeStreamDocument, ClientSession } from 'mongodb';
import type { News } from '../db/connect.js';
import type { Post } from '../db/types.js';
import { delay } from '../fetch/fetcher.js';
import { wordsOf } from '../post/fingerprint.js';

const positionName = 'follower';

type Seen = Pick<Post, '_id' | 'state' | 'title' | 'source' | 'tags' | 'added' | 'edited'>;

const stopWords = new Set('the and for are but not you all any can had her was one our out has his how its may who did get with that this from they will what when your which their there have than then into over more some such only after about without between before does why were been being them these those would could should und der die das von mit'.split(' '));

/** The words of a title that are worth suggesting. */
export function suggested(title: string): string[] {
  return [...new Set(wordsOf(title).filter((word) => word.length > 2 && word.length < 30 && !stopWords.has(word) && !/^\d+$/.test(word)))];
}

export class Follower {
  #stream: ChangeStream<Post> | undefined;
  #stopped = false;
  #running: Promise<void> | undefined;
  /** Called for each post that is shown for the first time. */
  onPost: (id: string) => void = () => {};

  constructor(readonly news: News) {}

  /** Opens the stream; resolves when it is open, so that nothing that comes after is missed. */
  async start(): Promise<void> {
    const opened = await this.#open();
    this.#running = this.#follow(opened);
  }

  async #open(): Promise<ChangeStream<Post>> {
    const position = await this.news.positions.findOne({ _id: positionName });
    const stream = this.news.posts.watch<Post>(
      [
        { $match: { operationType: { $in: ['insert', 'update', 'replace'] } } },
        // What the text is does not matter here, only that something changed.
        { $project: { 'fullDocument.html': 0, 'fullDocument.text': 0, 'fullDocument.versions': 0, 'fullDocument.keys': 0, 'updateDescription.updatedFields.html': 0, 'updateDescription.updatedFields.text': 0, 'updateDescription.updatedFields.versions': 0 } },
      ],
      { fullDocument: 'updateLookup', ...(position && { resumeAfter: position.token }) },
    );
    this.#stream = stream as unknown as ChangeStream<Post>;
    await stream.tryNext().then((first) => first && this.#take(first as ChangeStreamDocument<Post>));
    return this.#stream;
  }

  async #follow(first: ChangeStream<Post>): Promise<void> {
    let stream: ChangeStream<Post> | undefined = first;
    while (!this.#stopped) {
      try {
        stream ??= await this.#open();
        for await (const change of stream as AsyncIterable<ChangeStreamDocument<Post>>) await this.#take(change);
      } catch (error) {
        if (this.#stopped) return;
        // The database restarts, or the driver could not resume by itself: begin again where we were.
        console.error(`follower: ${(error as Error).message}`);
        await stream?.close().catch(() => {});
        stream = undefined;
        await delay(500);
      }
    }
  }

  async #take(change: ChangeStreamDocument<Post>): Promise<void> {
    const post = 'fullDocument' in change ? (change.fullDocument as Seen | undefined) : undefined;
    const updated = change.operationType === 'update' ? (change.updateDescription.updatedFields ?? {}) : undefined;
    const appears = post?.state === 'shown' && (updated === undefined || 'state' in updated);
    // Live pages first: readers wait for them, nobody for the counts.
    if (post && appears) this.onPost(post._id);
    await this.news.client.withSession((session) =>
      session.withTransaction(async () => {
        if (post) await this.#derive(post, appears, session);
        await this.news.positions.updateOne({ _id: positionName }, { $set: { token: change._id } }, { upsert: true, session });
      }),
    );
  }

  async #derive(post: Seen, appears: boolean, session: ClientSession): Promise<void> {
    if (appears) {
      const words = suggested(post.title);
      if (words.length) await this.news.suggestions.bulkWrite(words.map((word) => ({ updateOne: { filter: { _id: word }, update: { $inc: { n: 1 } }, upsert: true } })), { session });
    }
    const feeds = ['all', `source:${post.source}`, ...post.tags.map((tag) => `tag:${tag}`)];
    await this.news.feedstate.bulkWrite(feeds.map((feed) => ({ updateOne: { filter: { _id: feed }, update: { $set: { changed: new Date() }, $inc: { n: 1 } }, upsert: true } })), { session });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#stream?.close();
    await this.#running;
  }
}
