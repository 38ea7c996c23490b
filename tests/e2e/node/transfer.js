// Moves money between accounts by withTransaction: Node's driver, or mongosh when `db` is there.
// node transfer.js URI DB WORKER CALLS; mongosh URI/DB --eval 'var worker = 1, calls = 5' --file transfer.js
const ACCOUNTS = 4;

function places(worker, call) {
  const from = (worker + call) % ACCOUNTS;
  return [from, (from + 1 + (call % (ACCOUNTS - 1))) % ACCOUNTS];
}

async function withDriver([uri, name, worker, calls]) {
  const { MongoClient } = require('mongodb');
  const client = new MongoClient(uri);
  const accounts = client.db(name).collection('accounts');
  const done = client.db(name).collection('done');
  for (let call = 0; call < Number(calls); call += 1) {
    const [from, to] = places(Number(worker), call);
    await client.withSession((session) => session.withTransaction(async () => {
      await accounts.updateOne({ _id: from }, { $inc: { n: -1 } }, { session });
      await accounts.updateOne({ _id: to }, { $inc: { n: 1 } }, { session });
      await done.insertOne({ _id: `${worker} ${call}`, from, to }, { session });
    }, { writeConcern: { w: 'majority' } }));
  }
  await client.close();
}

function inShell() {
  const session = db.getMongo().startSession();
  const [accounts, done] = ['accounts', 'done'].map((name) => session.getDatabase(db.getName()).getCollection(name));
  for (let call = 0; call < calls; call += 1) {
    const [from, to] = places(worker, call);
    session.withTransaction(() => {
      accounts.updateOne({ _id: from }, { $inc: { n: -1 } });
      accounts.updateOne({ _id: to }, { $inc: { n: 1 } });
      done.insertOne({ _id: `${worker} ${call}`, from, to });
    });
  }
  session.endSession();
}

if (typeof db === 'undefined') {
  withDriver(process.argv.slice(2)).catch((error) => { console.error(error); process.exit(1); });
} else {
  inShell();
}
