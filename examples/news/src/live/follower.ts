/**
 * The follower of changes. A change stream tells it of each change of a post; it keeps what is derived from posts (the
 * words suggested, the states of the outgoing feeds) and tells live pages.
 *
 * What is derived and how far the follower has come are written in one transaction. A follower that dies begins again
 * at that place: nothing is left out and no word counted twice. One that was away for so long that the oplog no longer
 * has its place makes everything anew from the posts (`rebuild.ts`) and follows from there.
 */
import { isDeepStrictEqual } from 'node:util';
import { type ChangeStream, type ChangeStreamDocument, type ChangeStreamOptions, type ClientSession, MongoServerError } from 'mongodb';
import type { News } from '../db/connect.js';
import type { Position, Post } from '../db/types.js';
import { delay } from '../delay.js';
import { Derived, type Seen } from './derived.js';
import { rebuild } from './rebuild.js';

const positionName = 'follower';

/** So many changes wait to be written at most; then the stream waits. */
const mostQueued = 2000;
const mostTogether = 500;

interface Taken {
  token: unknown;
  post: Seen | undefined;
  appears: boolean;
}

/**
 * Errors after which a place in the oplog is of no use any more: it was overwritten (136, 286), or is that of another
 * oplog, as after a restore (260, 280).
 */
const lost = [136, 260, 280, 286];

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
    try {
      return await this.#openAt(position);
    } catch (error) {
      if (!(error instanceof MongoServerError) || !lost.includes(Number(error.code))) throw error;
      console.error(`follower: ${error.message}; the words suggested and the states of feeds are made anew`);
      await this.#stream?.close().catch(() => {});
      return this.#openAt(await rebuild(this.news, positionName));
    }
  }

  async #openAt(position: Position | null): Promise<ChangeStream<Post>> {
    const stream = this.news.posts.watch<Post>(
      [
        { $match: { operationType: { $in: ['insert', 'update', 'replace'] } } },
        // What the text is does not matter here, only that something changed.
        { $project: { 'fullDocument.html': 0, 'fullDocument.text': 0, 'fullDocument.versions': 0, 'fullDocument.keys': 0, 'updateDescription.updatedFields.html': 0, 'updateDescription.updatedFields.text': 0, 'updateDescription.updatedFields.versions': 0 } },
      ],
      { fullDocument: 'updateLookup', ...placeOf(position) },
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
    const derived = new Derived();
    for (const { post, appears } of batch) if (post) derived.add(post, appears);
    await derived.write(this.news, session);
    await this.news.positions.updateOne({ _id: positionName }, { $set: { token }, $unset: { at: '' } }, { upsert: true, session });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#stream?.close();
    await this.#running;
    await this.#writing;
  }
}

/** Where a stream begins: after a change that was followed, or at a time of which all was derived; else now. */
function placeOf(position: Position | null): ChangeStreamOptions {
  if (position?.token) return { resumeAfter: position.token };
  return position?.at ? { startAtOperationTime: position.at } : {};
}
