/**
 * Makes anew what is derived from posts, when the changes since the last time cannot be followed any more.
 *
 * The posts are read as they were at one moment (a snapshot read), and the stream begins at that moment: a post that
 * comes while they are read is followed, and none is counted twice.
 */
import { Timestamp } from 'mongodb';
import type { News } from '../db/connect.js';
import type { Position } from '../db/types.js';
import { Derived, type Seen } from './derived.js';

export async function rebuild(news: News, name: string): Promise<Position> {
  const { at, derived } = await read(news);
  // The first moment after what was read.
  const position = { _id: name, at: new Timestamp({ t: at.getHighBitsUnsigned(), i: at.getLowBitsUnsigned() + 1 }) };
  await news.client.withSession((session) =>
    session.withTransaction(async () => {
      await news.suggestions.deleteMany({}, { session });
      // Feeds count on from where they were: a state that a reader has kept must not come back.
      await derived.write(news, session);
      await news.positions.replaceOne({ _id: name }, { at: position.at }, { upsert: true, session });
    }),
  );
  return position;
}

async function read(news: News): Promise<{ at: Timestamp; derived: Derived }> {
  const derived = new Derived();
  const first = await news.db.command({ find: 'posts', projection: { state: 1, title: 1, source: 1, tags: 1 }, batchSize: 1000, readConcern: { level: 'snapshot' } });
  const at = first.cursor.atClusterTime as Timestamp;
  for (let { id, firstBatch: batch } = first.cursor; ; ) {
    for (const post of batch as Seen[]) derived.add(post, post.state === 'shown');
    if (id.toString() === '0') return { at, derived };
    const next = await news.db.command({ getMore: id, collection: 'posts', batchSize: 1000 });
    ({ id, nextBatch: batch } = next.cursor);
  }
}
