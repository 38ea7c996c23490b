/** A reader, an editor and an owner to try the site with. They are users of the database. */
import { randomBytes } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { databaseName, News, type Secrets } from '../db/connect.js';
import { makeUser } from '../db/roles.js';
import type { Role } from '../db/types.js';

const roles: Record<Role, string> = { reader: 'newsReader', editor: 'newsEditor', owner: 'newsOwner' };

export async function makePeople(uri: string, secrets: Secrets): Promise<void> {
  const client = await new MongoClient(uri, { auth: { username: 'root', password: secrets.root }, authSource: 'admin', writeConcern: { w: 1 } }).connect();
  try {
    const news = new News(client, client.db(databaseName));
    for (const name of Object.keys(roles) as Role[]) {
      await makeUser(news.db, name, secrets.people[name], roles[name]);
      await news.readers.updateOne(
        { _id: name },
        { $setOnInsert: { email: `${name}@news.example`, joined: new Date(), follows: ['papers-slowly', 'runbook'], bookmarks: [], searches: [], feedToken: randomBytes(18).toString('base64url') } },
        { upsert: true },
      );
    }
  } finally {
    await client.close();
  }
}
