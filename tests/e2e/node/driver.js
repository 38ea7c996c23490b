// Node's driver against the server whose URI is the first argument. Prints the
// names of the steps that went through as its last line.
'use strict';
const assert = require('node:assert/strict');
const {
  MongoClient, ObjectId, Long, Decimal128, Binary, Timestamp, MinKey, MaxKey, Double, BSONRegExp,
} = require('mongodb');

const uri = process.argv[2];
const done = [];

async function main() {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 20000 });
  await client.connect();
  const db = client.db('e2e_node');
  await db.dropDatabase();
  assert.equal((await db.command({ ping: 1 })).ok, 1);
  assert.ok((await db.admin().serverInfo()).version.startsWith('8.'));
  done.push('connect');

  const things = db.collection('things');
  const inserted = await things.insertMany(
    Array.from({ length: 1000 }, (_, i) => ({ _id: i, n: i % 10, nested: { deep: { i } }, tags: [`t${i % 3}`] })),
  );
  assert.equal(inserted.insertedCount, 1000);
  assert.ok((await db.collection('ids').insertOne({})).insertedId instanceof ObjectId);
  done.push('insert');

  assert.equal((await things.findOne({ 'nested.deep.i': 77 }))._id, 77);
  assert.equal(await things.countDocuments({ n: 3 }), 100);
  assert.deepEqual((await things.distinct('tags')).sort(), ['t0', 't1', 't2']);
  assert.deepEqual(
    await things.find({ _id: { $gte: 5 } }).project({ n: 1 }).sort({ _id: -1 }).skip(990).limit(2).toArray(),
    [{ _id: 9, n: 9 }, { _id: 8, n: 8 }],
  );
  done.push('find');

  let seen = 0;
  for await (const doc of things.find({}, { batchSize: 7, sort: { _id: 1 } })) assert.equal(doc._id, seen++);
  assert.equal(seen, 1000);
  const left = things.find({}, { batchSize: 2 });
  await left.next();
  await left.close();
  done.push('cursors');

  assert.equal((await things.updateMany({ n: 1 }, { $inc: { n: 100 } })).modifiedCount, 100);
  assert.equal((await things.updateOne({ _id: -1 }, { $set: { a: 1 } }, { upsert: true })).upsertedId, -1);
  assert.equal((await things.findOneAndUpdate({ _id: -1 }, { $set: { a: 2 } }, { returnDocument: 'after' })).a, 2);
  assert.equal((await things.replaceOne({ _id: -1 }, { b: 1 })).modifiedCount, 1);
  assert.equal((await things.deleteMany({ n: 101 })).deletedCount, 100);
  done.push('update');

  const bulk = await things.bulkWrite([
    { insertOne: { document: { _id: 'x' } } },
    { updateOne: { filter: { _id: 'x' }, update: { $set: { y: 1 } } } },
    { deleteOne: { filter: { _id: 'x' } } },
  ]);
  assert.deepEqual([bulk.insertedCount, bulk.modifiedCount, bulk.deletedCount], [1, 1, 1]);
  done.push('bulk');

  await assert.rejects(things.insertOne({ _id: 0 }), (e) => e.code === 11000);
  await assert.rejects(db.command({ noSuchThing: 1 }), (e) => e.code === 59);
  await assert.rejects(things.find({ a: { $bogus: 1 } }).toArray(), (e) => e.code === 2);
  done.push('errors');

  await client.withSession(async (session) => {
    await things.insertOne({ _id: 'in a session' }, { session });
    assert.ok(await things.findOne({ _id: 'in a session' }, { session }));
    assert.ok(session.operationTime);
  });
  done.push('sessions');

  const { hosts } = await db.command({ hello: 1 });
  const set = new MongoClient(`mongodb://${hosts[0]}/?replicaSet=rs0`, { serverSelectionTimeoutMS: 20000 });
  await set.db('e2e_node').collection('majority').insertOne({ _id: 1 }, { writeConcern: { w: 'majority' } });
  assert.equal((await set.db('e2e_node').collection('majority').find({}, { readPreference: 'nearest' }).toArray()).length, 1);
  await set.close();
  done.push('replica set');

  const types = {
    _id: 'types', double: new Double(1), long: Long.fromString('9007199254740993'), decimal: Decimal128.fromString('1.10'),
    binary: new Binary(Buffer.from([1, 2]), 0), date: new Date(0), ts: new Timestamp({ t: 5, i: 6 }),
    min: new MinKey(), max: new MaxKey(), regex: new BSONRegExp('a', 'i'), nil: null, arr: [1, 'a', { b: [] }],
  };
  await db.collection('types').insertOne(types);
  const raw = await db.collection('types').findOne({}, { promoteValues: false, bsonRegExp: true });
  assert.equal(raw.double._bsontype, 'Double');
  assert.equal(raw.long.toString(), '9007199254740993');
  assert.equal(raw.decimal.toString(), '1.10');
  assert.equal(raw.regex.pattern, 'a');
  assert.equal(raw.ts.i, 6);
  done.push('types');

  await db.dropDatabase();
  await client.close();
}

main().then(
  () => console.log(JSON.stringify(done)),
  (error) => {
    console.error('after', done, error);
    process.exit(1);
  },
);
