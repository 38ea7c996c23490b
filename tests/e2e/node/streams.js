// Change streams of Node's driver, on a collection, its database and the cluster, each with the events that the driver resumes by itself
// after the server was killed. Arguments: URI, number of documents. Says "watching" once the streams are open, and at the end the
// `_id`s that each of them saw, in the order of the events.
'use strict';
const { MongoClient } = require('mongodb');

const [uri, count] = [process.argv[2], Number(process.argv[3])];

async function main() {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 60000 });
  await client.connect();
  const db = client.db('e2e_streams');
  const pipeline = [{ $match: { operationType: 'insert' } }];
  const streams = [db.collection('c').watch(pipeline), db.watch(pipeline), client.watch(pipeline, { fullDocument: 'updateLookup' })];
  const seen = streams.map(() => []);
  // The first tryNext opens a stream.
  for (const [i, stream] of streams.entries()) {
    const event = await stream.tryNext();
    if (event) seen[i].push(event.documentKey._id);
  }
  console.log('watching');
  await Promise.all(streams.map(async (stream, i) => {
    while (seen[i].length < count) seen[i].push((await stream.next()).documentKey._id);
    await stream.close();
  }));
  await client.close();
  console.log(JSON.stringify(seen));
}

main().catch((error) => { console.error(error); process.exit(1); });
