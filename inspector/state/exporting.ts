/** What one takes with one: the log up to here as a file, a test of the path, a fork. */
import { batch } from '@preact/signals';
import { copy, download } from './files.ts';
import { cursor, entries, open, openConversation, put, said } from './store.ts';

const HEADER = (id: string): string => JSON.stringify({ format: 'runchart-log', version: 1, conversationId: id });

/** The same lines that a store would keep. */
export function logText(upTo: number): string {
  const id = entries.value[0]?.conversationId ?? open.value?.id ?? 'log';
  const lines = entries.value.slice(0, upTo + 1).map(({ seq, at, ...rest }) => JSON.stringify({ seq, at, ...rest }));
  return `${[HEADER(id), ...lines].join('\n')}\n`;
}

export function exportLog(): void {
  const name = `${(open.value?.id ?? 'log').replace(/\.jsonl$/, '')}.jsonl`;
  download(logText(cursor.value), name);
  said.value = `${name} saved`;
}

/** The path of the log as a vitest file: copied, and saved where nothing may be copied. */
export async function exportTest(): Promise<void> {
  const { testOf } = await import('../../src/testing/agentPaths/scriptOf.ts');
  await copy(testOf(entries.value.slice(0, cursor.value + 1)), 'test');
}

/** A fork of its own: the log up to the entry, as a conversation beside this one and as the file to open it from. */
export function forkHere(): void {
  const conversation = open.value;
  if (!conversation || conversation.of === 'xstate') return;
  const name = `${conversation.id.replace(/\.jsonl$/, '')} at ${cursor.value}`;
  const kept = entries.value.slice(0, cursor.value + 1);
  batch(() => {
    download(logText(cursor.value), `${name}.jsonl`);
    put({ id: name, source: 'file', of: 'runchart', entries: kept, broken: [], isFork: true });
    openConversation(name);
    said.value = `${name}.jsonl saved: the log up to here`;
  });
}
