/** Puts the sample sources on the list. Those that are there stay as editors have left them, with today's addresses. */
import { Int32 } from 'mongodb';
import type { News } from '../db/connect.js';
import type { Source } from '../db/types.js';
import type { SampleServer } from './server.js';

export async function installSources(news: News, server: SampleServer, refreshMinutes: number): Promise<void> {
  for (const { id, feed, home, sample } of server.documents()) {
    const now = new Date();
    const known = await news.sources.findOne({ _id: id });
    if (known) {
      // The sample server may have another port this time.
      const moved = (address: string) => server.origin(id) + new URL(address).pathname;
      await news.sources.updateOne({ _id: id }, { $set: { feed: moved(known.feed), home, 'fetch.next': now, refreshMinutes } }, { writeConcern: { w: 1 } });
      continue;
    }
    const source: Source = {
      _id: id,
      name: sample.name,
      home,
      feed,
      formerly: [],
      kind: sample.kind,
      why: sample.why,
      authors: sample.authors,
      full: sample.full,
      review: sample.review,
      lang: sample.lang,
      tags: sample.tags,
      refreshMinutes,
      state: 'active',
      added: now,
      fetch: { next: now, lease: new Date(0), failures: new Int32(0) as never, history: [] },
    };
    await news.sources.insertOne(source, { writeConcern: { w: 1 } });
  }
}
