/** Pools of connections, one for each service, and typed collections. */
import { type Collection, type Db, MongoClient, type MongoClientOptions } from 'mongodb';
import type { Service } from './roles.js';
import type * as t from './types.js';

export const databaseName = 'news';

export interface Secrets {
  root: string;
  services: Record<Service, string>;
  people: Record<t.Role, string>;
}

/** A database whose collections have types. */
export class News {
  constructor(
    readonly client: MongoClient,
    readonly db: Db,
  ) {}
  get posts(): Collection<t.Post> { return this.db.collection('posts'); }
  get sources(): Collection<t.Source> { return this.db.collection('sources'); }
  get changes(): Collection<t.Change> { return this.db.collection('changes'); }
  get readers(): Collection<t.Reader> { return this.db.collection('readers'); }
  get reads(): Collection<t.Read> { return this.db.collection('reads'); }
  get sessions(): Collection<t.Session> { return this.db.collection('sessions'); }
  get pictures(): Collection<t.Picture> { return this.db.collection('pictures'); }
  get robots(): Collection<t.Robots> { return this.db.collection('robots'); }
  get suggestions(): Collection<t.Suggestion> { return this.db.collection('suggestions'); }
  get feedstate(): Collection<t.FeedState> { return this.db.collection('feedstate'); }
  get positions(): Collection<t.Position> { return this.db.collection('positions'); }
  get fetches(): Collection<t.Measurement> { return this.db.collection('fetches'); }
  close(): Promise<void> { return this.client.close(); }
}

const options: MongoClientOptions = {
  appName: 'news',
  // A database that restarts is back within seconds; until then requests wait rather than fail.
  serverSelectionTimeoutMS: 15_000,
  ignoreUndefined: true,
};

/** Connects as a user of the database `news`. */
export async function connect(uri: string, user: string, password: string, more: MongoClientOptions = {}): Promise<News> {
  const client = new MongoClient(uri, {
    ...options,
    auth: { username: user, password },
    authSource: databaseName,
    ...more,
  });
  await client.connect();
  return new News(client, client.db(databaseName));
}

/**
 * Services whose writes nobody waits for: what a loss of power takes from them they fetch or derive again. All others
 * have the default, majority: a reply means that the journal is on disk.
 */
const unhurried: ReadonlySet<Service> = new Set(['fetcher', 'follower']);

/** Connects as the user of a service. */
export function connectService(uri: string, service: Service, secrets: Secrets): Promise<News> {
  return connect(uri, `news-${service}`, secrets.services[service], unhurried.has(service) ? { writeConcern: { w: 1 } } : {});
}
