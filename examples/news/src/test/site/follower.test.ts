import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { News } from '../../db/connect.js';
import { Follower } from '../../live/follower.js';
import { until, World } from '../world.js';

describe('a follower whose place the oplog no longer has', { timeout: 900_000 }, () => {
  const world = World.forSuite({ flags: ['--oplogSize', '1'] });
  let follower: News;
  before(async () => {
    follower = await world.as('follower');
  });

  /** Writes so much that the oplog begins later than the follower's place. */
  async function overwrite(): Promise<void> {
    const { client } = await world.root();
    const { token } = (await follower.positions.findOne({ _id: 'follower' })) as { token: unknown };
    const filler = client.db('filler').collection('c');
    const lost = async () => {
      const stream = follower.posts.watch([], { resumeAfter: token });
      return stream.tryNext().then(() => false, (error: { code?: number }) => error.code === 286).finally(() => stream.close());
    };
    // Segments of the log have 32 MiB, and those before a checkpoint go.
    for (let i = 0; i < 8; i++) await filler.insertMany(Array.from({ length: 100 }, () => ({ x: 'y'.repeat(100_000) })));
    await client.db('admin').command({ fsync: 1, lock: true });
    await client.db('admin').command({ fsyncUnlock: 1 });
    await until(lost, 'the place is lost');
  }

  test('makes anew what it derives, counts every word once, and goes on', async () => {
    const words = await follower.suggestions.find().sort({ _id: 1 }).toArray();
    const feeds = await follower.feedstate.find().toArray();
    await world.site.follower.stop();
    // While it is away a post is hidden, and nothing will tell it so.
    const hidden = await world.news.posts.findOne({ source: 'runbook', state: 'shown' });
    await world.news.posts.updateOne({ _id: hidden?._id as string }, { $set: { state: 'hidden' } });
    await overwrite();
    const again = new Follower(follower);
    const seen: string[] = [];
    again.onPost = (id) => seen.push(id);
    await again.start();
    try {
      const after = await follower.suggestions.find().sort({ _id: 1 }).toArray();
      const count = (list: typeof words) => list.reduce((sum, { n }) => sum + n, 0);
      assert.ok(count(after) < count(words) && count(after) > count(words) - 20, `${count(after)} of ${count(words)}`);
      // No state of a feed comes back, so that no reader is told 304 for what is new.
      for (const { _id, n } of await follower.feedstate.find().toArray()) assert.ok(n > (feeds.find((one) => one._id === _id)?.n ?? 0), _id);
      await world.news.posts.updateOne({ _id: hidden?._id as string }, { $set: { state: 'shown' } });
      await until(() => seen.includes(hidden?._id as string), 'the follower goes on');
      await until(async () => count(await follower.suggestions.find().toArray()) === count(words), 'its words are counted again');
    } finally {
      await again.stop();
    }
    // And from there it is resumed like any other.
    const position = await follower.positions.findOne({ _id: 'follower' });
    assert.ok(position?.token && !position.at);
  });
});
