// Node's driver through failovers, as test_failovers.py says: client.js URI NAME, until standard input ends.
'use strict';
const { MongoClient } = require('mongodb');

const [uri, name] = process.argv.slice(2);
const PATIENCE_MS = 60000;
const say = (what) => process.stderr.write(`${name} ${what}\n`);
const wait = (ms) => new Promise((done) => { setTimeout(done, ms); });

// This driver does not label the network error of a connection whose pool its monitor has cleared already, so withTransaction does not
// repeat it: such an error is told as an unknown move.

// Change streams resume by themselves once; after that with their token.
async function watch(things, seen, opened) {
  let token;
  for (;;) {
    const stream = things.watch([{ $match: { 'fullDocument.by': name } }], token ? { resumeAfter: token } : {});
    try {
      for (;;) {
        const change = await stream.tryNext();
        opened();
        token = stream.resumeToken ?? token;
        if (change) seen.push(change.fullDocument._id);
      }
    } catch (error) {
      say(`watch: ${error}`);
      await stream.close().catch(() => {});
    }
  }
}

async function main() {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: PATIENCE_MS });
  const db = client.db('failovers');
  let stop = false;
  process.stdin.on('end', () => { stop = true; }).resume();
  await db.collection('counters').insertOne({ _id: name, n: 0 });
  await db.collection('accounts').insertMany(['a', 'b'].map((side) => ({ _id: `${name} ${side}`, n: 0 })));
  const things = db.collection('things');
  const seen = [];
  await new Promise((opened) => { watch(things, seen, opened); });
  console.log('running');
  const acknowledged = [];
  let [unknown, increments, unknownIncrements, moved, unknownMoves] = [0, 0, 0, 0, 0];
  for (let at = 1; !stop; at += 1) {
    const id = `${name} ${at}`;
    await things.insertOne({ _id: id, by: name }).then(
      () => acknowledged.push(id),
      (error) => { unknown += 1; say(`insert: ${error}`); },
    );
    await db.collection('counters').updateOne({ _id: name }, { $inc: { n: 1 } }).then(
      () => { increments += 1; },
      (error) => { unknownIncrements += 1; say(`update: ${error}`); },
    );
    if (at % 5 === 0) {
      await client.withSession((session) => session.withTransaction(async () => {
        await db.collection('accounts').updateOne({ _id: `${name} a` }, { $inc: { n: -1 } }, { session });
        await db.collection('accounts').updateOne({ _id: `${name} b` }, { $inc: { n: 1 } }, { session });
      })).then(
        () => { moved += 1; },
        (error) => { unknownMoves += 1; say(`move: ${error}`); },
      );
    }
  }
  const begun = Date.now();
  const last = acknowledged.at(-1);
  while (last && !seen.includes(last) && Date.now() - begun < PATIENCE_MS) await wait(50);
  const there = new Set((await things.find({ by: name }).toArray()).map((found) => found._id));
  const known = new Set(seen);
  const account = async (side) => (await db.collection('accounts').findOne({ _id: `${name} ${side}` })).n;
  console.log(JSON.stringify({
    acknowledged: acknowledged.length,
    unknown,
    missing: acknowledged.filter((one) => !there.has(one)),
    unseen: acknowledged.filter((one) => !known.has(one)),
    seenTwice: seen.length - known.size,
    increments,
    unknownIncrements,
    counter: (await db.collection('counters').findOne({ _id: name })).n,
    moved,
    unknownMoves,
    accounts: [await account('a'), await account('b')],
  }));
  process.exit(0);
}

main().catch((error) => { say(error.stack); process.exit(1); });
