/**
 * `make news`: a Nestor server with rights, the sample web, the fetcher and the site, in one terminal.
 *
 *     node dist/start.js --nestor BINARY [--data FOLDER] [--port 8100]
 */
import { fork } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { connectService, newSecrets, openSite } from './app.js';
import { databaseName, type Secrets } from './db/connect.js';
import { setUp } from './db/setup.js';
import { delay } from './delay.js';
import { freePort, Nestor } from './nestor.js';
import { SampleServer } from './sample/server.js';
import { installSources } from './sample/install.js';
import { makePeople } from './sample/people.js';

const { values: options } = parseArgs({
  options: {
    nestor: { type: 'string', default: 'nestor' },
    data: { type: 'string', default: './data' },
    port: { type: 'string', default: '8100' },
  },
});

const folder = resolve(options.data);
mkdirSync(folder, { recursive: true, mode: 0o700 });
const secretsFile = join(folder, 'secrets.json');
if (!existsSync(secretsFile)) writeFileSync(secretsFile, JSON.stringify(newSecrets()), { mode: 0o600 });
const secrets = JSON.parse(readFileSync(secretsFile, 'utf8')) as Secrets;

// Nearly all of the 300 posts are there from the start; six come one by one, so that the page is seen to be live.
const samples = new SampleServer({ today: new Date(), later: { posts: 6, everyMs: 30_000 } });
await samples.listen();
const nestor = new Nestor(options.nestor, await freePort(), join(folder, 'nestor'));
// It loads while the database starts, and waits until it is told to begin.
const fetcher = fork(new URL('fetcher-process.js', import.meta.url), {
  env: { ...process.env, NEWS_URI: nestor.uri, NEWS_SECRETS: JSON.stringify(secrets), NEWS_ALLOW: samples.origins.join(','), NEWS_HOST_PAUSE_MS: '0' },
});
// Until everything runs, Ctrl-C ends the server, which is in a group of its own, and then this process.
const early = () => void nestor.stop().finally(() => process.exit(1));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, early);
await nestor.start();
await setUp(nestor.uri, secrets);

const editor = await connectService(nestor.uri, 'editor', secrets);
const [site] = await Promise.all([openSite(nestor.uri, secrets), makePeople(nestor.uri, secrets), installSources(editor, samples, 0.1)]);
fetcher.send('begin');
const port = await site.listen(Number(options.port)).catch(() => site.listen(0));

// The first page is to have the year's posts, not an empty list.
for (const begun = Date.now(); Date.now() - begun < 15_000; await delay(100)) {
  if (!(await editor.sources.findOne({ state: 'active', 'fetch.lastOk': { $exists: false }, 'fetch.failures': 0 }))) break;
}
await editor.close();

console.log(`
Database news:  http://127.0.0.1:${port}/    (ready after ${(performance.now() / 1000).toFixed(1)} s)

Sign in as      reader / ${secrets.people.reader}
                editor / ${secrets.people.editor}
                owner  / ${secrets.people.owner}

mongosh "mongodb://editor:${secrets.people.editor}@127.0.0.1:${nestor.port}/${databaseName}?directConnection=true"

New posts come every half minute for three minutes. Ctrl-C stops everything; the data stay in ${folder}.
`);

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  // Whatever hangs, the server is stopped and the terminal is free again.
  setTimeout(() => void nestor.stop().finally(() => process.exit(1)), 10_000).unref();
  fetcher.kill('SIGTERM');
  await new Promise((done) => (fetcher.exitCode === null ? fetcher.once('exit', done) : done(undefined)));
  await site.close();
  await samples.close();
  await nestor.stop();
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.off(signal, early);
  process.on(signal, () => void stop());
}
