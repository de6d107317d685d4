/**
 * The process of Vitest's workers, kept from one run to the next: loading the sources takes longer than most tests.
 * Invariant: a run that asks for a process of its own gets one that has loaded nothing, and the process ends after it.
 */
import { fork } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { join } from 'node:path';

let kept;

/** Ends the kept process. */
export function endKept() {
  kept?.kill('SIGKILL');
  kept = undefined;
}

/** For `poolRunner` of Vitest's config. `isOwn` is true if the next run gets its own process. */
export const keptPool = (isOwn) => ({
  name: 'kept',
  createPoolWorker: (options) => new KeptWorker(options, isOwn()),
});

/** Vitest starts and stops this for each run. A kept process has started once, and never stops. */
class KeptWorker {
  name = 'kept';
  cacheFs = true;
  #events = new EventEmitter();
  #options;
  #own;
  #process;
  #onMessage = (message) => this.#events.emit('message', message);
  #onExit = (code) => {
    if (this.#process === kept) kept = undefined;
    this.#events.emit('exit', code);
  };

  constructor(options, own) {
    this.#options = options;
    this.#own = own;
  }

  on(event, callback) {
    this.#events.on(event, callback);
  }

  off(event, callback) {
    this.#events.off(event, callback);
  }

  deserialize(message) {
    return message;
  }

  send(message) {
    const isRequest = message?.__vitest_worker_request__ === true;
    if (isRequest && message.type === 'start' && this.#process.hasStarted) return this.#answer('started');
    if (isRequest && message.type === 'stop' && !this.#own) return this.#answer('stopped');
    if (isRequest && message.type === 'start') this.#process.hasStarted = true;
    if (this.#process.connected) this.#process.send(message);
  }

  start() {
    const { distPath, env, execArgv } = this.#options;
    const begin = () =>
      fork(join(distPath, 'workers/forks.js'), [], { env, execArgv, stdio: 'ignore', serialization: 'advanced' });
    if (this.#own) this.#process = begin();
    else {
      kept ??= begin();
      this.#process = kept;
    }
    this.#process.on('message', this.#onMessage).on('exit', this.#onExit);
  }

  stop() {
    this.#process.off('message', this.#onMessage).off('exit', this.#onExit);
    if (this.#own) this.#process.kill('SIGKILL');
  }

  #answer(type) {
    setImmediate(() => this.#events.emit('message', { type, __vitest_worker_response__: true }));
  }
}
