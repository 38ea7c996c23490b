/** Latencies and failures of fetching: a time series collection, one measurement per attempt. */
import type { Db } from 'mongodb';
import { isUnsupported } from '../db/collections.js';
import type { News } from '../db/connect.js';
import type { Measurement } from '../db/types.js';

/** Makes the collection `fetches` where the server has time series; where it has none, nothing is measured. */
export async function setUpMeasurements(db: Db): Promise<void> {
  if ((await db.listCollections({ name: 'fetches' }).toArray()).length) return;
  try {
    await db.createCollection('fetches', {
      timeseries: { timeField: 'at', metaField: 'source', granularity: 'minutes' },
      expireAfterSeconds: 400 * 24 * 3600,
    });
  } catch (error) {
    if (!isUnsupported(error)) throw error;
    console.log('this server has no time series collections: latencies of fetching are not kept');
  }
}

/** Whether measurements are kept: asked once, by whoever may not list collections too. */
export class Measurements {
  #kept: boolean | undefined;
  constructor(readonly news: News) {}

  async kept(): Promise<boolean> {
    this.#kept ??= (await this.news.db.listCollections({ name: 'fetches' }, { nameOnly: true, authorizedCollections: true }).toArray()).length > 0;
    return this.#kept;
  }

  async add(measurement: Measurement): Promise<void> {
    if (await this.kept()) await this.news.fetches.insertOne(measurement);
  }
}
