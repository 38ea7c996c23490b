/**
 * The follower of changes. A change stream tells it of each change of a post; it keeps what is derived from posts (the
 * words suggested, the states of the outgoing feeds) and tells live pages.
 *
 * What is derived and how far the follower has come are written in one transaction. A follower that dies begins again
 * at that place: nothing is left out and no word counted twice.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ChangeStream, ChangeStreamDocument, ClientSession } from 'mongodb';
import type { News } from '../db/connect.js';
import type { Post } from '../db/types.js';
import { delay } from '../delay.js';
import { wordsOf } from '../post/fingerprint.js';

const positionName = 'follower';

/** So many changes wait to be written at most; then the stream waits. */
const mostQueued = 2000;
const mostTogether = 500;

interface Taken {
  token: unknown;
  post: Seen | undefined;
  appears: boolean;
}

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
  readonly #queue: Taken[] = [];
  #writing: Promise<void> | undefined;
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
        for await (const change of stream as AsyncIterable<ChangeStreamDocument<Post>>) {
          this.#take(change);
          if (this.#queue.length >= mostQueued) await this.#writing;
        }
      } catch (error) {
        if (this.#stopped) return;
        // The database restarts, or the driver could not resume by itself: begin again where we were.
        console.error(`follower: ${(error as Error).message}`);
        await stream?.close().catch(() => {});
        stream = undefined;
        await this.#writing;
        await delay(500);
      }
    }
  }

  #take(change: ChangeStreamDocument<Post>): void {
    const post = 'fullDocument' in change ? (change.fullDocument as Seen | undefined) : undefined;
    const updated = change.operationType === 'update' ? (change.updateDescription.updatedFields ?? {}) : undefined;
    const appears = post?.state === 'shown' && (updated === undefined || 'state' in updated);
    // Live pages first: readers wait for them, nobody for the counts.
    if (post && appears) this.onPost(post._id);
    this.#queue.push({ token: change._id, post, appears });
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
  }

  /** Writes what follows from the changes in the queue, many changes in one transaction. */
  async #write(): Promise<void> {
    while (this.#queue.length) {
      const batch = this.#queue.slice(0, mostTogether);
      try {
        await this.news.client.withSession((session) => session.withTransaction(() => this.#derive(batch, session)));
        this.#queue.splice(0, batch.length);
      } catch (error) {
        if (this.#stopped) return;
        console.error(`follower: ${(error as Error).message}`);
        await delay(500);
      }
    }
  }

  async #derive(batch: Taken[], session: ClientSession): Promise<void> {
    const { token } = batch.at(-1) as Taken;
    const position = await this.news.positions.findOne({ _id: positionName }, { session });
    // A commit whose answer was lost: it is all there.
    if (position && isDeepStrictEqual(position.token, token)) return;
    const words = new Map<string, number>();
    const feeds = new Map<string, number>();
    const count = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
    for (const { post, appears } of batch) {
      if (!post) continue;
      if (appears) for (const word of suggested(post.title)) count(words, word);
      for (const feed of ['all', `source:${post.source}`, ...post.tags.map((tag) => `tag:${tag}`)]) count(feeds, feed);
    }
    const changed = new Date();
    if (words.size) await this.news.suggestions.bulkWrite([...words].map(([_id, n]) => ({ updateOne: { filter: { _id }, update: { $inc: { n } }, upsert: true } })), { session });
    if (feeds.size) await this.news.feedstate.bulkWrite([...feeds].map(([_id, n]) => ({ updateOne: { filter: { _id }, update: { $set: { changed }, $inc: { n } }, upsert: true } })), { session });
    await this.news.positions.updateOne({ _id: positionName }, { $set: { token } }, { upsert: true, session });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#stream?.close();
    await this.#running;
    await this.#writing;
  }
}
