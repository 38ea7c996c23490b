/** What has to be there before the first request: the first user, collections, roles, the services' users. */
import { MongoClient, MongoServerError } from 'mongodb';
import { setUpMeasurements } from '../fetch/measure.js';
import { setUpSearch } from '../site/search.js';
import { makeCollections } from './collections.js';
import { databaseName, type Secrets } from './connect.js';
import { makeRoles, makeUser, services, type Service } from './roles.js';

/** Set-up is done again at each start, so it waits for no disk. */
const options = { writeConcern: { w: 1 } };

/** Connects as `root`; on a server without users it makes that user first, as the localhost exception allows. */
async function connectRoot(uri: string, password: string): Promise<MongoClient> {
  const root = () => new MongoClient(uri, { auth: { username: 'root', password }, authSource: 'admin', appName: 'news set-up', ...options }).connect();
  try {
    return await root();
  } catch (error) {
    if (!(error instanceof MongoServerError) || error.code !== 18) throw error;
  }
  const nobody = await new MongoClient(uri, { appName: 'news set-up' }).connect();
  try {
    await nobody.db('admin').command({ createUser: 'root', pwd: password, roles: ['root'] });
  } finally {
    await nobody.close();
  }
  return root();
}

export async function setUp(uri: string, secrets: Secrets): Promise<void> {
  const client = await connectRoot(uri, secrets.root);
  try {
    const db = client.db(databaseName);
    await makeCollections(db);
    await setUpSearch(db);
    await setUpMeasurements(db);
    await makeRoles(db);
    await Promise.all((Object.keys(services) as Service[]).map((service) => makeUser(db, `news-${service}`, secrets.services[service], services[service])));
    // Records what the queries of pages cost: those that carry a comment, as `reads.ts` gives them.
    await db.command({ profile: 0, filter: { 'command.comment': { $regex: '^page ' } } });
    await db.command({ profile: 1, filter: { 'command.comment': { $regex: '^page ' } } });
  } finally {
    await client.close();
  }
}
