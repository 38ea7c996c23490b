// Run by mongosh. Prints the names of the steps that went through as its last line.
const steps = [];

function same(actual, expected, what) {
  const [a, e] = [EJSON.stringify(actual), EJSON.stringify(expected)];
  if (a !== e) throw new Error(`${what}: ${a} instead of ${e}`);
}

function fails(code, what, action) {
  try {
    action();
  } catch (error) {
    if (error.code !== code) throw error;
    return;
  }
  throw new Error(`${what} did not fail`);
}

db = db.getSiblingDB('e2e_shell');
db.dropDatabase();
same(db.runCommand({ ping: 1 }).ok, 1, 'ping');
same(db.version().startsWith('8.'), true, 'version');
same(db.hello().isWritablePrimary, true, 'hello');
steps.push('connect');

db.things.insertMany([{ _id: 1, a: [1, 2] }, { _id: 2, a: [3] }, { _id: 3, b: { c: 1 } }]);
same(db.things.find({ a: 2 }).toArray(), [{ _id: 1, a: [1, 2] }], 'find');
same(db.things.findOne({ 'b.c': 1 })._id, 3, 'findOne');
same(db.things.updateOne({ _id: 2 }, { $push: { a: 4 } }).modifiedCount, 1, 'updateOne');
same(db.things.findOne({ _id: 2 }), { _id: 2, a: [3, 4] }, 'updated');
same(db.things.replaceOne({ _id: 3 }, { z: 1 }).modifiedCount, 1, 'replaceOne');
same(db.things.deleteOne({ _id: 3 }).deletedCount, 1, 'deleteOne');
same(db.things.countDocuments(), 2, 'countDocuments');
same(db.things.findOneAndUpdate({ _id: 1 }, { $set: { q: 1 } }, { returnNewDocument: true }).q, 1, 'findOneAndUpdate');
same(db.things.bulkWrite([{ insertOne: { document: { _id: 9 } } }]).insertedCount, 1, 'bulkWrite');
steps.push('crud');

db.many.insertMany(Array.from({ length: 1200 }, (_, i) => ({ _id: i })));
let count = 0;
db.many.find().batchSize(50).forEach((doc) => { same(doc._id, count, 'order'); count += 1; });
same(count, 1200, 'forEach');
same(db.many.find().itcount(), 1200, 'itcount');
same(db.many.find({ _id: { $gt: 1190 } }).sort({ _id: -1 }).limit(1).next()._id, 1199, 'sort');
steps.push('cursors');

fails(11000, 'a duplicate _id', () => db.things.insertOne({ _id: 1 }));
fails(59, 'an unknown command', () => db.runCommand({ noSuchThing: 1 }));
fails(2, 'an unknown operator', () => db.things.find({ a: { $bogus: 1 } }).toArray());
steps.push('errors');

db.createCollection('made');
same(db.getCollectionNames().sort(), ['made', 'many', 'things'], 'getCollectionNames');
db.made.renameCollection('renamed');
same(db.renamed.drop(), true, 'drop');
same(db.getCollectionInfos({ name: 'many' })[0].type, 'collection', 'getCollectionInfos');
steps.push('collections');

same(db.stats().ok, 1, 'stats');
same(db.many.stats().count, 1200, 'collection stats');
same(db.serverStatus().ok, 1, 'serverStatus');
same(db.adminCommand({ listDatabases: 1 }).ok, 1, 'listDatabases');
same(db.hostInfo().ok, 1, 'hostInfo');
same(rs.status().ok, 1, 'rs.status');
same(db.many.find({ _id: 5 }).explain().ok, 1, 'explain');
same(db.currentOp().ok, 1, 'currentOp');
same(db.many.getIndexes().length, 1, 'getIndexes');
steps.push('helpers');

const session = db.getMongo().startSession();
session.getDatabase('e2e_shell').things.insertOne({ _id: 'session' });
same(session.getDatabase('e2e_shell').things.findOne({ _id: 'session' })._id, 'session', 'session');
session.endSession();
steps.push('sessions');

db.dropDatabase();
print(JSON.stringify(steps));
