/** Starts and stops a Nestor server of our own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { MongoClient } from 'mongodb';
import { delay } from './delay.js';

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

export class Nestor {
  #process: ChildProcess | undefined;

  constructor(
    readonly binary: string,
    readonly port: number,
    readonly folder: string,
    readonly more: string[] = [],
  ) {}

  get uri(): string {
    return `mongodb://127.0.0.1:${this.port}/?directConnection=true`;
  }

  /** Starts the server, with rights asked for, and waits until it answers. */
  async start(): Promise<void> {
    mkdirSync(this.folder, { recursive: true });
    const args = ['serve', '--auth', '--dbpath', this.folder, '--port', `${this.port}`, '--bind_ip', '127.0.0.1', '--nounixsocket', '--logpath', `${this.folder}.log`, ...this.more];
    // In a group of its own: Ctrl-C in the terminal is for us, and we stop the server last.
    const child = spawn(this.binary, args, { stdio: 'ignore', detached: true });
    this.#process = child;
    let ended: string | undefined;
    child.once('exit', (code, signal) => (ended = `nestor ended (${code ?? signal}); see ${this.folder}.log`));
    child.once('error', (error) => (ended = error.message));
    for (const begun = Date.now(); Date.now() - begun < 60_000; await delay(50)) {
      if (ended) throw new Error(ended);
      const client = new MongoClient(this.uri, { serverSelectionTimeoutMS: 300, connectTimeoutMS: 300 });
      try {
        await client.db('admin').command({ ping: 1 });
        return;
      } catch {
        // Not yet.
      } finally {
        await client.close();
      }
    }
    throw new Error('nestor does not answer');
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), 30_000);
    await ended;
    clearTimeout(late);
  }
}
