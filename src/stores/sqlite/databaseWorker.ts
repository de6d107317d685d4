/**
 * The thread of a SQLite store, since `node:sqlite` is synchronous. Invariant: changes that wait share one transaction, and
 * so one sync. Reads come after the changes that were requested with them, so that they see only durable entries.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { LogDatabase, type Outcome } from './logDatabase.ts';
import { type Answer, describeError, type Request, type RequestName } from './threadMessages.ts';

const CHANGES: ReadonlySet<RequestName> = new Set(['open', 'append', 'putBlob', 'release', 'remove']);

const { path, synchronous } = workerData as { path: string; synchronous: 'FULL' | 'NORMAL' };
const port = parentPort;
if (!port) throw new Error('this file is the thread of a SQLite store');
// Until Node 24 it warns that SQLite is experimental.
process.removeAllListeners('warning');
let database: LogDatabase | undefined;

const answer = (id: number, outcome: Outcome): void => {
  const message: Answer =
    'error' in outcome ? { id, error: describeError(outcome.error) } : { id, value: outcome.value };
  port.postMessage(message);
};

function resultOf(opened: LogDatabase, { name, params }: Request): unknown {
  return (opened[name] as (params: unknown) => unknown).call(opened, params);
}

function settle(requests: readonly Request[]): void {
  database ??= new LogDatabase(path, synchronous);
  const opened = database;
  const changes = requests.filter(({ name }) => CHANGES.has(name));
  if (changes.length > 0) {
    const outcomes = opened.commit(changes.map((request) => () => resultOf(opened, request)));
    for (const [index, { id }] of changes.entries()) answer(id, outcomes[index] as Outcome);
  }
  for (const request of requests) {
    if (CHANGES.has(request.name)) continue;
    try {
      answer(request.id, { value: resultOf(opened, request) });
    } catch (error) {
      answer(request.id, { error });
    }
  }
}

/** The last request of all. */
function close({ id }: Request): void {
  try {
    database?.close();
    answer(id, { value: undefined });
  } catch (error) {
    answer(id, { error });
  }
  port?.close();
}

port.on('message', (first: Request) => {
  const requests = [first];
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) requests.push(next.message);
  const last = requests.at(-1)?.name === 'close' ? requests.pop() : undefined;
  try {
    if (requests.length > 0) settle(requests);
  } catch (error) {
    // The file cannot be opened. The next request tries again.
    for (const { id } of requests) answer(id, { error });
  }
  if (last) close(last);
});
