// node-postgres with its cursors and streams, unmodified: `node node.js URL`. Prints the names of the steps that went well.

'use strict';

const assert = require('node:assert/strict');
const { pipeline } = require('node:stream/promises');
const { Readable } = require('node:stream');
const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');
const QueryStream = require('pg-query-stream');
const copy = require('pg-copy-streams');

const url = process.argv[2];
const client = new Client(url);
const notices = [];
client.on('notice', (notice) => notices.push(`${notice.severity} ${notice.code} ${notice.message}`));

async function refused(query, values, expected) {
  await assert.rejects(client.query(query, values), (error) => {
    for (const [name, value] of Object.entries(expected)) assert.equal(error[name], value, `${name} of ${error.message}`);
    return true;
  });
}

async function types() {
  await client.query(`CREATE TABLE node (id int PRIMARY KEY, t text, n numeric(10,3), z timestamptz, j jsonb, ts text[], ns int[], b bytea, o bool,
    f float8, l int8, i interval, u uuid, q varchar(5) NOT NULL, r int UNIQUE CHECK (r > 0))`);
  const given = [1, 'text', '1.500', new Date(1234), { a: [1, null] }, ['a', 'b"', null], [1, -2], Buffer.from([0, 255]), true, 1.25,
    '9007199254740993', '1 day 02:03:04', '6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'abc', 5];
  const places = given.map((_, at) => `$${at + 1}`).join(', ');
  const inserted = await client.query(`INSERT INTO node VALUES (${places}) RETURNING *`, given);
  assert.equal(inserted.command, 'INSERT');
  const [row] = inserted.rows;
  assert.deepEqual([row.i.days, row.i.hours], [1, 2]);
  assert.deepEqual(Object.values({ ...row, i: given[11] }), given);
  assert.equal(inserted.fields[1].columnID, 2);
}

async function prepared() {
  for (let turn = 0; turn < 3; turn += 1) {
    const named = await client.query({ name: 'by-id', text: 'SELECT id, t FROM node WHERE id = $1', values: [1], rowMode: 'array' });
    assert.deepEqual(named.rows, [[1, 'text']]);
  }
  const among = await client.query('SELECT id FROM node WHERE id = ANY ($1)', [[1, 2]]);
  assert.equal(among.rowCount, 1);
  const several = await client.query('SELECT 1 AS a; SELECT 2 AS b');
  assert.deepEqual(several.map((result) => result.rows[0]), [{ a: 1 }, { b: 2 }]);
}

async function errors() {
  await refused('INSERT INTO node (id) VALUES (2)', [], { code: '23502', table: 'node', column: 'q' });
  await refused("INSERT INTO node (id, q, r) VALUES (2, 'a', 5)", [], { code: '23505', constraint: 'node_r_key', detail: 'Key (r)=(5) already exists.' });
  await refused("INSERT INTO node (id, q, r) VALUES (2, 'a', -5)", [], { code: '23514', constraint: 'node_r_check' });
  await refused("INSERT INTO node (id, q) VALUES (2, 'too long')", [], { code: '22001' });
  await refused('SELECT nothing FROM node', [], { code: '42703', position: '8' });
  await refused('SELECT $1::int', ['x'], { code: '22P02' });
  await refused('SELECT 1 / 0', [], { code: '22012' });
}

async function streams() {
  const cursor = client.query(new Cursor('SELECT generate_series(1, 10) AS n'));
  assert.equal((await cursor.read(3)).length, 3);
  assert.equal((await cursor.read(100)).length, 7);
  await cursor.close();
  // One that is left before its end.
  const left = client.query(new Cursor('SELECT generate_series(1, 10) AS n'));
  assert.equal((await left.read(2)).length, 2);
  await left.close();
  let rows = 0;
  for await (const row of client.query(new QueryStream('SELECT generate_series(1, $1::int) AS n', [1000], { batchSize: 10 }))) rows += row.n > 0;
  assert.equal(rows, 1000);
}

async function copies() {
  await pipeline(Readable.from(['10\ta\n11', '\tb\n']), client.query(copy.from('COPY node (id, q) FROM STDIN')));
  const pieces = [];
  for await (const piece of client.query(copy.to('COPY (SELECT id, q FROM node WHERE id >= 10 ORDER BY id) TO STDOUT (FORMAT csv)'))) pieces.push(piece);
  assert.equal(Buffer.concat(pieces).toString(), '10,a\n11,b\n');
  await assert.rejects(pipeline(Readable.from(['x\ta\n']), client.query(copy.from('COPY node (id, q) FROM STDIN'))), { code: '22P02' });
}

async function told() {
  await client.query('DROP TABLE IF EXISTS nothing');
  await client.query('CREATE TABLE IF NOT EXISTS node (id int PRIMARY KEY)');
  await client.query('COMMIT');
  assert.deepEqual(notices, [
    'NOTICE 00000 table "nothing" does not exist, skipping',
    'NOTICE 42P07 relation "node" already exists, skipping',
    'WARNING 25P01 there is no transaction in progress',
  ]);
}

async function transactions() {
  await client.query('BEGIN ISOLATION LEVEL SERIALIZABLE');
  await client.query("UPDATE node SET t = 'changed' WHERE id = 1");
  await client.query('SAVEPOINT before');
  await assert.rejects(client.query('SELECT nothing'));
  await assert.rejects(client.query('SELECT 1'), { code: '25P02' });
  await client.query('ROLLBACK TO before');
  await client.query('COMMIT');
  assert.equal((await client.query('SELECT t FROM node WHERE id = 1')).rows[0].t, 'changed');
}

async function pools() {
  const pool = new Pool({ connectionString: url, max: 4, statement_timeout: 20000, application_name: 'pooled' });
  const results = await Promise.all([...Array(40).keys()].map((n) => pool.query('SELECT $1::int AS n', [n])));
  assert.deepEqual(results.map((result) => result.rows[0].n), [...Array(40).keys()]);
  assert.equal((await pool.query('SHOW statement_timeout')).rows[0].statement_timeout, '20s');
  await pool.end();
}

async function main() {
  await client.connect();
  for (const step of [types, prepared, errors, streams, copies, told, transactions, pools]) {
    await step();
    console.log(step.name);
  }
  await client.end();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
