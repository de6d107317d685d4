/**
 * Calls between the processes of the server bench. Rule: one request, one answer. A process serves acts by name, and ends
 * with its parent.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** Answers `/probe` at once, beside another listener: how late the loop of the server is. */
export const withProbe = (listener) => (request, response) => {
  if (request.url !== '/probe') return listener(request, response);
  request.resume();
  response.writeHead(204).end();
};

/** Milliseconds until the loop has taken the answer of one call of the file system. */
export async function nextProbe() {
  const since = performance.now();
  await stat('/');
  return performance.now() - since;
}

/** Serves acts for the parent. */
export function serve(acts) {
  const all = {
    /** CPU of this process so far, in milliseconds. */
    cpu() {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    },
    held() {
      for (let times = 0; times < 4; times++) globalThis.gc?.();
      const { heapUsed, rss } = process.memoryUsage();
      return { heapUsed, rss, files: readdirSync('/proc/self/fd').length };
    },
    ...acts,
  };
  process.on('message', async ({ id, act, options }) => {
    try {
      process.send({ id, value: await all[act](options) });
    } catch (error) {
      process.send({ id, failed: error.stack });
    }
  });
  process.on('disconnect', () => process.exit());
  process.send({ id: 0 });
}

/** Starts a process that serves acts. */
export async function start(file, ...args) {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const child = fork(path, args, { execArgv: ['--expose-gc', ...process.execArgv] });
  const waiting = new Map();
  let last = 0;
  const answered = (id) => new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  const isReady = answered(0);
  child.on('message', ({ id, value, failed }) => {
    if (failed) waiting.get(id).reject(new Error(failed));
    else waiting.get(id).resolve(value);
    waiting.delete(id);
  });
  const exited = once(child, 'exit');
  child.on('exit', (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`${file} ended with ${code}`));
  });
  await isReady;
  return {
    ask(act, options) {
      last += 1;
      child.send({ id: last, act, options });
      return answered(last);
    },
    async end() {
      child.disconnect();
      await exited;
    },
  };
}
