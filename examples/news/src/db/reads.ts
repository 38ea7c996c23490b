/**
 * The queries of one page. They go to the driver as they are; on the way they get a comment, by which the page finds
 * its own records in the database's profiler, and are remembered, so that `/explain` can explain them.
 */
import { randomBytes } from 'node:crypto';
import type { Document, Filter, FindOptions } from 'mongodb';
import type { News } from './connect.js';

export interface Figures {
  queries: number;
  ms: number;
  keys: number;
  documents: number;
}

type Command = { find: string; [option: string]: unknown } | { aggregate: string | 1; [option: string]: unknown };

export class Reads {
  readonly comment = `page ${randomBytes(9).toString('base64url')}`;
  readonly commands: Command[] = [];
  /** Milliseconds spent waiting for the database. */
  waited = 0;

  constructor(readonly news: News) {}

  async find<T extends Document>(collection: string, filter: Filter<T>, options: FindOptions = {}): Promise<T[]> {
    this.commands.push({ find: collection, filter, ...options });
    return this.#timed(() => this.news.db.collection<T>(collection).find(filter, { ...options, comment: this.comment, batchSize: 1000 }).toArray()) as Promise<T[]>;
  }

  async one<T extends Document>(collection: string, filter: Filter<T>, options: FindOptions = {}): Promise<T | undefined> {
    return (await this.find<T>(collection, filter, { ...options, limit: 1 }))[0];
  }

  async aggregate<T extends Document>(collection: string, pipeline: Document[]): Promise<T[]> {
    this.commands.push({ aggregate: collection, pipeline, cursor: {} });
    return this.#timed(() => this.news.db.collection(collection).aggregate<T>(pipeline, { comment: this.comment, batchSize: 1000 }).toArray());
  }

  /** Asks in SQL: the statement is the first stage of a pipeline on the database, whose collections are its tables. */
  async sql<T extends Document>(query: string, parameters: unknown[] = []): Promise<T[]> {
    const pipeline = [{ $sql: { query, parameters } }];
    this.commands.push({ aggregate: 1, pipeline, cursor: {} });
    return this.#timed(() => this.news.db.aggregate<T>(pipeline, { comment: this.comment, batchSize: 1000 }).toArray());
  }

  async #timed<T>(run: () => Promise<T>): Promise<T> {
    const begun = performance.now();
    try {
      return await run();
    } finally {
      this.waited += performance.now() - begun;
    }
  }

  /** What the profiler says of this page's queries. */
  async figures(): Promise<Figures> {
    const records = await this.news.db
      .collection('system.profile')
      .find({ 'command.comment': this.comment }, { projection: { keysExamined: 1, docsExamined: 1 } })
      // From the newest on: the scan ends as soon as it has them all.
      .sort({ $natural: -1 })
      .limit(Math.max(1, this.commands.length))
      .toArray();
    const sum = (field: string) => records.reduce((total, record) => total + Number(record[field] ?? 0), 0);
    return { queries: this.commands.length, ms: this.waited, keys: sum('keysExamined'), documents: sum('docsExamined') };
  }

  /** Explains each query of the page. */
  explain(): Promise<Document[]> {
    return Promise.all(this.commands.map((command) => this.news.db.command({ explain: command, verbosity: 'executionStats' })));
  }
}
